"""The list of the tools that act on Keryx. A new tool is a module of this folder and a line here."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from keryx.core.deliveries.rules.route import SplitChat
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.keryx.ask_user import AskUser
from keryx.tools.keryx.delegate import Delegate
from keryx.tools.keryx.history_tools import ReadSession, SearchHistory
from keryx.tools.keryx.list_tools import ListPlatforms, ListProcesses, ListSchedules, ListSessions
from keryx.tools.keryx.memory_tools import Recall, Remember
from keryx.tools.keryx.read_result import ReadResult
from keryx.tools.keryx.schedule_tools import PreviewSchedule, ScheduleTool
from keryx.tools.keryx.send_tools import SendMessage, SendToOthers
from keryx.tools.tool import Tool


def keryx_tools(
    database: Database,
    *,
    ids: Ids | None = None,
    zone: str = "UTC",
    output_dir: Path | None = None,
    splitters: Mapping[str, SplitChat] | None = None,
    troubles: Callable[[], Sequence[str]] = tuple,
) -> Sequence[Tool]:
    """Return the tools that act on Keryx.

    Schedules are read in ``zone``, and files that are sent are stored in ``output_dir``. ``splitters`` read the chat of
    a route for each platform. ``troubles`` returns the problems that only the owner is told.
    """
    chats = splitters or {}
    return [
        SearchHistory(database),
        ListSessions(database),
        ListSchedules(database),
        ListProcesses(database),
        ListPlatforms(database, troubles),
        ReadSession(database),
        ReadResult(database),
        Recall(database),
        Remember(database),
        PreviewSchedule(database, zone),
        ScheduleTool(database, zone),
        AskUser(),
        SendMessage(database, chats, output_dir),
        SendToOthers(database, chats),
        Delegate(database, ids or Ids()),
    ]
