"""The tools that act on Keryx itself, together: what the wiring gives them is the same for all."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from keryx.domain.route import SplitChat
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.asking import AskUser
from keryx.tools.delegating import Delegate
from keryx.tools.planning import PreviewSchedule, Schedule
from keryx.tools.reading import ReadSession
from keryx.tools.sending import SendMessage, SendToOthers
from keryx.tools.tool import Tool


def action_tools(
    database: Database,
    ids: Ids,
    *,
    zone: str = "UTC",
    output_dir: Path | None = None,
    splitters: Mapping[str, SplitChat] | None = None,
) -> Sequence[Tool]:
    """Return the tools.

    Rules of schedules are read in ``zone``, files that are sent are kept in ``output_dir``, and ``splitters`` are the
    platforms' ways to read the chat of a route.
    """
    readers = splitters or {}
    return [
        ReadSession(database),
        SendMessage(database, readers, output_dir),
        SendToOthers(database, readers),
        PreviewSchedule(database, zone),
        Schedule(database, zone),
        AskUser(database),
        Delegate(database, ids),
    ]
