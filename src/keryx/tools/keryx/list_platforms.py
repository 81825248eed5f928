"""``list_platforms``: list the connected platforms and, for the owner, problems with tool servers."""

from collections.abc import Callable, Sequence

from keryx.core.accounts.views import list_platforms
from keryx.core.upkeep.views.nodes import may_see_problems
from keryx.store.database import Database, ReadTx
from keryx.tools.base_tool import Arguments
from keryx.tools.keryx.store_reader import StoreReader
from keryx.tools.tool import ToolCall


class ListPlatforms(StoreReader):
    """Lists connected platforms."""

    name = "list_platforms"
    description = "List the platforms that are connected now, and the servers of tools that do not work."

    def __init__(self, database: Database, troubles: Callable[[], Sequence[str]]) -> None:
        super().__init__(database)
        self._troubles = troubles

    def read(self, tx: ReadTx, call: ToolCall, given: Arguments) -> str:  # noqa: ARG002 - it takes none
        """Return a line for each connected account and, for the owner, for each server that does not work."""
        connected = list_platforms(tx) or ["No platform is connected; this terminal always is."]
        may_see = may_see_problems(tx, person_id=call.person_id, audience_id=call.audience_id)
        return "\n".join([*connected, *(self._troubles() if may_see else ())])
