"""The numbers that define the index format.

A change of any of them, of the tokens or of the packed bytes needs a new ``FORMAT``. An index of another format is
discarded and rebuilt from the messages.
"""

from typing import Final

FORMAT: Final = 4
"""The format that this code reads and writes; the index stores the number."""
DOCS_MAX: Final = 65_000
"""Documents in a segment, at most, so that two bytes hold a document's number."""
TERM_MAX: Final = 64
"""Characters of a token that the index keeps. Longer tokens may share a term; the text tells them apart."""
COUNT_MAX: Final = 255
"""A count that means "this many or more": the index does not know all positions then."""
LENGTH_MAX: Final = 65_535
CHUNK_DOCS: Final = 512
"""Documents that one chunk of columns describes."""
SCOPE: Final = "\x01"
"""First character of scope terms, which stand for sessions, audiences and filters. No token contains it."""

DAMAGED: Final = "The search index is damaged. It is rebuilt from the messages; nothing is lost."
