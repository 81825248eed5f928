"""``read_result``: show a window of a long result of the conversation."""

from typing import Final

from keryx.core.media.rules import WINDOW_CHARACTERS_MAX
from keryx.core.media.views import read_result
from keryx.core.people.rules.toolset import RESULTS
from keryx.errors import ToolFailed
from keryx.store.database import ReadTx
from keryx.tools.base_tool import Arguments, Parameter
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall

OFFSET_MAX: Final = 10**12


class ReadResult(StoreReader):
    """Shows a window of a long result of the conversation."""

    name = "read_result"
    description = "Read on in a result of this conversation that was too long to be shown whole."
    toolset = RESULTS
    parameters = {  # noqa: RUF012 - never changed
        "result": Parameter(help="Its name, as given where it was cut", required=True),
        "offset": Parameter(
            kind="integer", help="The first character to read; else 0", low=0, high=OFFSET_MAX
        ),
        "limit": Parameter(
            kind="integer",
            help=f"How many characters; {WINDOW_CHARACTERS_MAX} where not said",
            low=1,
            high=WINDOW_CHARACTERS_MAX,
        ),
    }

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return a window of the result below a heading with its place."""
        name = given.text("result").strip().lower()
        whole = read_result(tx, call.session_id, name)
        if whole is None:
            raise ToolFailed(
                "This conversation has no such result; give the name as written where it was cut."
            )
        first = given.whole("offset", 0)
        end = min(first + given.whole("limit", WINDOW_CHARACTERS_MAX), len(whole))
        if first >= len(whole):
            raise ToolFailed(f"The result has {len(whole)} characters; give a smaller offset.")
        more = "" if end == len(whole) else f" Read on with offset {end}."
        return f"Characters {first} to {end} of {len(whole)}.{more}\n{whole[first:end]}"
