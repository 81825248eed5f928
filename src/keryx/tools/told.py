"""What the tools of this folder have in common: how they are offered, and how those run that read and tell.

A tool that tells what only the person may read refuses where others read the answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from keryx.agents.agent import ToolOffer
from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import STATE
from keryx.domain.turn import StepEffect
from keryx.store.database import Database, ReadTx
from keryx.tools.tool import ToolFailed, Use

PRIVATE = "That is told only in a direct message: others read this chat."


class Offered:
    """A tool on the store that says what it is with a few names."""

    name: str
    description: str
    effect: StepEffect = "pure"
    toolset: str = STATE
    parameters: dict[str, JsonValue] = {}  # noqa: RUF012 - each tool states its own
    optional: Sequence[str] = ()
    """Those of the parameters that may be left out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def offer(self) -> ToolOffer:
        """What the agent is told of it."""
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": self.parameters,
            "required": [name for name in self.parameters if name not in self.optional],
            "additionalProperties": False,
        }
        return ToolOffer(
            name=self.name,
            description=self.description,
            parameters=schema,
            effect=self.effect,
            toolset=self.toolset,
        )

    def question(self, use: Use) -> str:  # noqa: ARG002 - the same whatever it is used for
        """Return what a person is asked before, if anybody ever is."""
        return f"May I use {self.name}?"

    def pattern(self, use: Use) -> str | None:  # noqa: ARG002 - the same whatever it is used for
        """Return None: a lasting yes covers every use."""
        return None


class Told(Offered, ABC):
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
