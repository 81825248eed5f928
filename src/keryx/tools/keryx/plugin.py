"""The tools that act on Keryx itself as a plug-in."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from keryx.core.deliveries.rules.route import SplitChat
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.plugin import MadeTools, ToolContext, ToolPlugin
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
    """Return the tools that act on Keryx. A new tool is a module in this folder and an entry here.

    Schedules are read in ``zone``, and files that are sent are stored in ``output_dir``. ``splitters`` read the chat of
    a route for each platform. ``troubles`` returns the problems that only the owner may see.
    """
    from keryx.tools.keryx.ask_user import AskUser
    from keryx.tools.keryx.delegate import Delegate
    from keryx.tools.keryx.list_platforms import ListPlatforms
    from keryx.tools.keryx.list_processes import ListProcesses
    from keryx.tools.keryx.list_schedules import ListSchedules
    from keryx.tools.keryx.list_sessions import ListSessions
    from keryx.tools.keryx.preview_schedule import PreviewSchedule
    from keryx.tools.keryx.read_result import ReadResult
    from keryx.tools.keryx.read_session import ReadSession
    from keryx.tools.keryx.recall import Recall
    from keryx.tools.keryx.remember import Remember
    from keryx.tools.keryx.schedule import ScheduleTool
    from keryx.tools.keryx.search_history import SearchHistory
    from keryx.tools.keryx.send_message import SendMessage
    from keryx.tools.keryx.send_to_others import SendToOthers

    chats = splitters or {}
    return [
        *(kind(database) for kind in (SearchHistory, ListSessions, ListSchedules, ListProcesses)),
        ListPlatforms(database, troubles),
        *(kind(database) for kind in (ReadSession, ReadResult, Recall, Remember)),
        *(kind(database, zone) for kind in (PreviewSchedule, ScheduleTool)),
        AskUser(),
        SendMessage(database, chats, output_dir),
        SendToOthers(database, chats),
        Delegate(database, ids or Ids()),
    ]


def _make(context: ToolContext) -> MadeTools:
    tools = keryx_tools(
        context.database,
        ids=context.ids,
        zone=context.configuration.timezone,
        output_dir=context.configuration.output_dir,
        splitters=context.splitters,
        troubles=context.troubles,
    )
    return MadeTools(tools=tools)


PLUGIN: Final = ToolPlugin(make=_make)
