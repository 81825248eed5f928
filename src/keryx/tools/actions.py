"""The tools that act on Keryx itself, together: what the wiring gives them is the same for all."""

from collections.abc import Sequence
from pathlib import Path

from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.asking import AskUser
from keryx.tools.delegating import Delegate
from keryx.tools.planning import PreviewSchedule, Schedule
from keryx.tools.reading import ReadSession
from keryx.tools.sending import SendMessage, SendToOthers
from keryx.tools.tool import Tool


def action_tools(
    database: Database, ids: Ids, *, zone: str = "UTC", output_dir: Path | None = None
) -> Sequence[Tool]:
    """Return the tools; rules of schedules are read in ``zone``, and files that are sent are kept in ``output_dir``."""
    return [
        ReadSession(database),
        SendMessage(database, output_dir),
        SendToOthers(database),
        PreviewSchedule(database, zone),
        Schedule(database, zone),
        AskUser(database),
        Delegate(database, ids),
    ]
