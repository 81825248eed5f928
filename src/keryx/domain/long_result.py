"""Results too long for a model to read at once: what it is shown of them, and the name under which the rest is read.

One limit for every tool. What a model reads it reads again at every later step, so it is counted in thousands of
tokens and not in what a store could hold; and 16,000 characters are at most 64,000 bytes, so that no row of a
transcript is longer either.
"""

import hashlib
import re
from collections.abc import Callable
from json import dumps
from typing import Final

from keryx.domain.json_value import JsonValue
from keryx.values import dataclass

RESULT_TYPE: Final = "text/plain; charset=utf-8"
SHOWN_MAX: Final = 16_000
HEAD: Final = 12_000
TAIL: Final = 3_000
WINDOW_MAX: Final = 12_000
"""How much of a kept result is read at once: with its heading it is no long result itself."""

SEARCHED_MAX: Final = 200_000
"""How many characters of the beginning of a kept result a search looks at, besides the end that is shown."""
LEFT_OUT: Final = "characters are left out here. "

ReadKept = Callable[[str], str | None]
"""Returns the text that is kept under a hash for the session a message belongs to, or None."""

_NOTE: Final = re.compile(
    rf'\n\n\[\d+ {re.escape(LEFT_OUT)}[^\n"]*"([0-9a-f]{{64}})" and offset {HEAD} reads on\.\]\n\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongResult:
    """A result that is kept whole beside the transcript."""

    text: str

    @property
    def data(self) -> bytes:
        """The bytes that are kept; ``text_of_result`` reads them."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def hash(self) -> str:
        """The name under which it is kept."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def shown(self) -> str:
        """The beginning and the end, and how to read what is between."""
        left_out = len(self.text) - HEAD - TAIL
        note = (
            f"[{left_out} {LEFT_OUT}The whole result has {len(self.text)} characters; "
            f'read_result with result "{self.hash}" and offset {HEAD} reads on.]'
        )
        return f"{self.text[:HEAD]}\n\n{note}\n\n{self.text[-TAIL:]}"


def long_result(output: JsonValue) -> LongResult | None:
    """Return a result as what is kept of it, or None for one that is short enough to be shown whole."""
    text = output if isinstance(output, str) else dumps(output, ensure_ascii=False, indent=1)
    return LongResult(text=text) if len(text) > SHOWN_MAX else None


def searched_output(output: JsonValue, read_kept: ReadKept) -> JsonValue:
    """Return what a search looks at of a result as it is shown: where more of it is kept, that."""
    note = _NOTE.match(output, HEAD) if isinstance(output, str) else None
    whole = None if note is None else read_kept(note[1])
    if whole is None:
        return output
    return whole if len(whole) <= SEARCHED_MAX else f"{whole[:SEARCHED_MAX]}\n{whole[-TAIL:]}"


def text_of_result(data: bytes) -> str:
    """Return the text of a kept result."""
    return data.decode("utf-8", "surrogatepass")
