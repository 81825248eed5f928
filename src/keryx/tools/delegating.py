"""``delegate``: a task for a session of its own, whose answer is the call's result.

Nothing waits in memory that the store does not know: the call that runs again after a crash, here or elsewhere, finds
the session it opened and waits for the same end.
"""

import asyncio
from typing import Final

from keryx.domain.delegation import DELEGATE
from keryx.domain.graphemes import cut
from keryx.domain.json_value import JsonValue
from keryx.domain.session import SessionId
from keryx.domain.toolset import GENERAL
from keryx.domain.turn import StepEffect
from keryx.errors import InvalidValue, StoreUnavailable
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.told import Offered
from keryx.tools.tool import ToolFailed, Use, nearest
from keryx.transactions.delegate_task import Delegated, NotDelegated, Task, delegate_task
from keryx.views.tasks import TaskEnded, find_ended

LOOK_SECONDS: Final = 5.0
"""How long at most nobody looks whether it is done: commits wake it before."""
AWAY_SECONDS: Final = 1.0
ANSWER_CHARACTERS_MAX: Final = 30_000

TASK: Final = """\
Another agent gave you this task. Nobody else reads what you say, and nobody can be asked: do it with your tools as \
well as you can, and let your last message be the whole result, for the agent that waits for it.

{task}"""
CONTEXT: Final = "\n\nWhat it told you about it:\n{context}"


class Delegate(Offered):
    """Gives a task away and waits for what comes of it."""

    name = DELEGATE
    description = (
        "Give a task to another agent that works on it in a conversation of its own, and get its answer. It knows "
        "nothing of this conversation but what you tell it. Several calls at once work side by side."
    )
    effect: StepEffect = "idempotent"
    toolset = GENERAL
    parameters = {  # noqa: RUF012 - never changed
        "task": {"type": "string", "description": "What is to be done, and what the answer must contain"},
        "context": {"type": "string", "description": "What one must know for it"},
        "tools": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The names of those of your tools that it may use; all of them if left out",
        },
    }
    optional = ("context", "tools")

    def __init__(self, database: Database, ids: Ids) -> None:
        super().__init__(database)
        self._ids = ids

    async def run(self, use: Use) -> JsonValue:
        """Open the session, or find it, and return its answer."""
        context = use.text_if_any("context")
        text = TASK.format(task=use.text("task")) + (CONTEXT.format(context=context) if context else "")
        task = Task(key=use.key, text=text, tools=_tools(use))
        try:
            given = await self._database.write(
                lambda tx: delegate_task(
                    tx, self._ids, task, session_id=SessionId(use.session_id), person_id=use.person_id
                )
            )
        except InvalidValue as error:
            raise ToolFailed(str(error)) from error
        if isinstance(given, NotDelegated):
            raise ToolFailed(f"Nothing was delegated. {given.reason}")
        return _told(given, await self._wait(given, person_id=use.person_id))

    async def _wait(self, given: Delegated, *, person_id: int) -> TaskEnded:
        database = self._database
        while True:
            since = database.change_no
            try:
                ended = await database.read(lambda tx: find_ended(tx, given.inbox_id, person_id=person_id))
                if ended is not None:
                    return ended
                await database.changed(since=since, timeout_seconds=LOOK_SECONDS)
            except StoreUnavailable:
                # The task goes on wherever it runs, and a result of this call would be its only one.
                await asyncio.sleep(AWAY_SECONDS)


def _told(given: Delegated, ended: TaskEnded) -> str:
    where = f"read_session shows the rest: {given.session_id}"
    if ended.answer is None:
        raise ToolFailed(f"The task was not done: {ended.reason}. {where}")
    if not ended.answer:
        return f"It ended without a word. {where}"
    if len(ended.answer) <= ANSWER_CHARACTERS_MAX:
        return ended.answer
    return f"{cut(ended.answer, ANSWER_CHARACTERS_MAX)}\n({where})"


def _tools(use: Use) -> list[str]:
    """Return the tools that are given along: those named, which the turn must have, or all that it has."""
    wanted = use.names("tools")
    if wanted is None:
        return list(use.tools)
    missing = [name for name in wanted if name not in use.tools]
    if missing:
        near = nearest(missing[0], use.tools)
        raise ToolFailed(f"You have no tool {missing[0][:60]!r} to give along. {near}")
    return wanted
