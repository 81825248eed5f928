"""The base class of the tools that read the store and change nothing.

A private tool refuses if other people read the answer.
"""

from abc import abstractmethod
from typing import Final

from keryx.core.people.rules.toolset import STATE
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.store.database import Database, ReadTx
from keryx.tools.base_tool import Arguments, BaseTool
from keryx.tools.tool import ToolCall

PRIVATE: Final = "This is shown only in a direct message, because other people read this chat."
LISTED: Final = 10
"""How many rows a list shows."""


class StoreReader(BaseTool):
    """A tool that reads the store; it may run any number of times."""

    toolset: str = STATE
    is_private = False
    """Whether only the person may read the answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Read the store and return lines of text."""
        if self.is_private and call.audience_id is not None:
            raise ToolFailed(PRIVATE)
        return await self._database.read(lambda tx: self.read(tx, call, given))

    @abstractmethod
    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:
        """Return the answer."""


def session_name(title: str | None, session_id: str) -> str:
    """Return the title of a session with the id by which ``read_session`` finds it."""
    return session_id if title is None else f"{title} ({session_id})"
