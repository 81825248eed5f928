"""Tool results that are too long for a model: the shown part, and the name under which the model reads the rest.

One limit for every tool. A model reads a result again at every later step, so the limit is a few thousand tokens
and not what a store could hold. 16,000 characters are at most 64,000 bytes, which also bounds the rows of a
transcript.
"""

import hashlib
import re
from collections.abc import Callable
from json import dumps
from typing import Final

from keryx.core.values.json_value import JsonValue
from keryx.values import dataclass

RESULT_TYPE: Final = "text/plain; charset=utf-8"
SHOWN_CHARACTERS_MAX: Final = 16_000
HEAD_CHARACTERS: Final = 12_000
TAIL_CHARACTERS: Final = 3_000
WINDOW_CHARACTERS_MAX: Final = 12_000
"""How much of a stored result one call reads. With its heading, this answer is not a long result itself."""

SEARCHED_CHARACTERS_MAX: Final = 200_000
"""How much of a stored result is searchable, from its beginning; the shown end is searchable too."""
OMISSION: Final = "characters are left out here. "

ReadKept = Callable[[str], str | None]
"""Return the text that the message's session stores under a hash, or None."""

_NOTE: Final = re.compile(
    rf'\n\n\[\d+ {re.escape(OMISSION)}[^\n"]*"([0-9a-f]{{64}})" and offset {HEAD_CHARACTERS} reads on\.\]\n\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongResult:
    """A result that is stored in full outside the transcript."""

    text: str

    @property
    def data(self) -> bytes:
        """The stored bytes; ``text_of_result`` decodes them."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def hash(self) -> str:
        """The name under which the result is stored."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def shown(self) -> str:
        """The beginning and the end, and how to read the text between them."""
        omitted = len(self.text) - HEAD_CHARACTERS - TAIL_CHARACTERS
        note = (
            f"[{omitted} {OMISSION}The whole result has {len(self.text)} characters; "
            f'read_result with result "{self.hash}" and offset {HEAD_CHARACTERS} reads on.]'
        )
        return f"{self.text[:HEAD_CHARACTERS]}\n\n{note}\n\n{self.text[-TAIL_CHARACTERS:]}"


def long_result(output: JsonValue) -> LongResult | None:
    """Return the long result to store, or None if the output is short enough to show in full."""
    text = output if isinstance(output, str) else dumps(output, ensure_ascii=False, indent=1)
    return LongResult(text=text) if len(text) > SHOWN_CHARACTERS_MAX else None


def searched_output(output: JsonValue, read_kept: ReadKept) -> JsonValue:
    """Return the searchable text of a shown result: the stored result if there is one, else the output."""
    note = _NOTE.match(output, HEAD_CHARACTERS) if isinstance(output, str) else None
    whole = None if note is None else read_kept(note[1])
    if whole is None:
        return output
    if len(whole) <= SEARCHED_CHARACTERS_MAX:
        return whole
    return f"{whole[:SEARCHED_CHARACTERS_MAX]}\n{whole[-TAIL_CHARACTERS:]}"


def text_of_result(data: bytes) -> str:
    """Return the text of a stored result."""
    return data.decode("utf-8", "surrogatepass")
