"""``delegate``: give a task to a session of its own. The session's answer is the result of the call.

Memory holds nothing that the store does not. A call that runs again after a crash, here or on another node, finds the
session it opened and waits for the same turn.
"""

import asyncio
from typing import Final

from keryx.core.conversations.rules.session import SessionId
from keryx.core.turns.rules.delegation import DELEGATE
from keryx.core.turns.transactions.delegate_task import Delegated, NotDelegated, Task, delegate_task
from keryx.core.turns.views.delegated_tasks import TaskEnded, find_ended
from keryx.core.values.graphemes import cut
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import StoreUnavailable, ToolFailed
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall, nearest

LOOK_SECONDS: Final = 5.0
"""The longest time between two looks for the answer; a commit wakes the call earlier."""
AWAY_SECONDS: Final = 1.0
ANSWER_CHARACTERS_MAX: Final = 30_000

TASK: Final = """\
Another agent gave you this task. No person reads your messages, and you cannot ask anyone: do the task with your \
tools as well as you can, and make your last message the whole result, for the agent that waits for it.

{task}"""
CONTEXT: Final = "\n\nIts notes for the task:\n{context}"


class Delegate(BaseTool):
    """Gives a task to another agent and waits for its answer."""

    name = DELEGATE
    description = (
        "Give a task to another agent that works on it in a conversation of its own, and get its answer. It knows "
        "nothing of this conversation except your task and context. Several calls at once run in parallel."
    )
    effect: StepEffect = "idempotent"
    parameters = {  # noqa: RUF012 - never changed
        "task": Parameter(help="The task, and what the answer must contain", required=True),
        "context": Parameter(help="The facts that the task needs"),
        "tools": Parameter(
            kind="strings", help="The names of those of your tools that it may use; all of them if left out"
        ),
    }

    def __init__(self, database: Database, ids: Ids) -> None:
        self._database = database
        self._ids = ids

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Open the session, or find it, and return its answer."""
        context = given.text_or_none("context")
        text = TASK.format(task=given.text("task")) + (CONTEXT.format(context=context) if context else "")
        task = Task(key=call.key, text=text, tools=_tools(call, given))
        delegated = await self._database.write(
            lambda tx: delegate_task(
                tx, self._ids, task, session_id=SessionId(call.session_id), person_id=call.person_id
            )
        )
        if isinstance(delegated, NotDelegated):
            raise ToolFailed(f"Nothing was delegated. {delegated.reason}")
        return _answer(delegated, await self._wait(delegated, person_id=call.person_id))

    async def _wait(self, delegated: Delegated, *, person_id: int) -> TaskEnded:
        database = self._database
        while True:
            since = database.change_no
            try:
                ended = await database.read(
                    lambda tx: find_ended(tx, delegated.inbox_id, person_id=person_id)
                )
                if ended is not None:
                    return ended
                await database.changed(since=since, timeout_seconds=LOOK_SECONDS)
            except StoreUnavailable:
                # The task goes on wherever it runs, and an error now would be the only result of this call.
                await asyncio.sleep(AWAY_SECONDS)


def _answer(delegated: Delegated, ended: TaskEnded) -> str:
    where = f"read_session shows the rest: {delegated.session_id}"
    if ended.answer is None:
        raise ToolFailed(f"The task was not done: {ended.reason}. {where}")
    if not ended.answer:
        return f"It ended without a word. {where}"
    if len(ended.answer) <= ANSWER_CHARACTERS_MAX:
        return ended.answer
    return f"{cut(ended.answer, ANSWER_CHARACTERS_MAX)}\n({where})"


def _tools(call: ToolCall, given: Arguments) -> list[str]:
    """Return the tools for the task: those named, which the turn must have, or all tools of the turn."""
    wanted = given.texts("tools")
    if wanted is None:
        return list(call.tools)
    missing = [name for name in wanted if name not in call.tools]
    if missing:
        near = nearest(missing[0], call.tools)
        raise ToolFailed(f"You have no tool {missing[0][:60]!r} to give along. {near}")
    return wanted
