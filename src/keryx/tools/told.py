"""What the tools of this folder have in common: how they are offered, and how those run that read and tell.

A tool that tells what only the person may read refuses where others read the answer.
"""

from abc import abstractmethod
from collections.abc import Sequence

from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import STATE
from keryx.store.database import Database, ReadTx
from keryx.tools.face import Face
from keryx.tools.tool import ToolFailed, Use

PRIVATE = "That is told only in a direct message: others read this chat."


class Offered(Face):
    """A tool on the store; its parameters are JSON schemas."""

    toolset: str = STATE
    parameters: dict[str, JsonValue] = {}  # noqa: RUF012 - each tool states its own
    optional: Sequence[str] = ()
    """Those of the parameters that may be left out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def properties(self) -> dict[str, JsonValue]:
        """The schemas of its arguments, by name."""
        return self.parameters

    @property
    def required(self) -> list[str]:
        """The arguments that must be given."""
        return [name for name in self.parameters if name not in self.optional]


class Told(Offered):
    """A tool that reads and tells; it changes nothing and may run any number of times."""

    is_private = False
    """Whether it tells what only the person may read."""

    async def run(self, use: Use) -> JsonValue:
        """Read what is asked for and return it as lines of text."""
        if self.is_private and use.audience_id is not None:
            raise ToolFailed(PRIVATE)
        return await self._database.read(lambda tx: self.tell(tx, use))

    @abstractmethod
    def tell(self, tx: ReadTx, use: Use) -> str:
        """Return what is asked for."""
