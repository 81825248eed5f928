"""``read_result``: read on in a result that was too long to be shown at once."""

from typing import Final

from keryx.core.media.rules import WINDOW_MAX
from keryx.core.media.views import read_result
from keryx.core.people.rules.toolset import RESULTS
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.store.database import Database
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall

OFFSET_MAX: Final = 10**12


class ReadResult(BaseTool):
    """Shows a window of a long result of the conversation."""

    name = "read_result"
    description = "Read on in a result of this conversation that was too long to be shown whole."
    toolset = RESULTS
    parameters = {  # noqa: RUF012 - never changed
        "result": Parameter(help="Its name, as told where it was cut", required=True),
        "offset": Parameter(
            kind="integer", help="The first character to read; else 0", low=0, high=OFFSET_MAX
        ),
        "limit": Parameter(
            kind="integer", help=f"How many characters; {WINDOW_MAX} where not said", low=1, high=WINDOW_MAX
        ),
    }

    def __init__(self, database: Database) -> None:
        self._database = database

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Return a window of the result below a heading with its place."""
        name = given.text("result").strip().lower()
        whole = await self._database.read(lambda tx: read_result(tx, call.session_id, name))
        if whole is None:
            raise ToolFailed("This conversation has no such result; give the name as told where it was cut.")
        first = given.whole("offset", 0)
        end = min(first + given.whole("limit", WINDOW_MAX), len(whole))
        if first >= len(whole):
            raise ToolFailed(f"The result has {len(whole)} characters; give a smaller offset.")
        more = "" if end == len(whole) else f" Read on with offset {end}."
        return f"Characters {first} to {end} of {len(whole)}.{more}\n{whole[first:end]}"
