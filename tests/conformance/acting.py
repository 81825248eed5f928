"""What a turn does, in short: each as one transaction on a stage."""

from keryx.core.conversations.rules.message import Message, NewMessage, ToolResultPart
from keryx.core.conversations.transactions.append_message import Appended
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, roll_back_turn
from keryx.core.turns.transactions.record_step import (
    CallAlreadyEnded,
    NotStarted,
    Started,
    ask_approval,
    record_calls,
    record_result,
    start_call,
)
from keryx.core.turns.transactions.renew_turn import Renewed, renew_turn
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.testing.builders import call_message, result_message
from tests.conformance.stage import Stage


async def call(
    stage: Stage, begun: BegunTurn, *calls: tuple[str, StepEffect | None], text: str = ""
) -> Appended:
    """Let a turn make calls."""
    message = call_message(*calls, text=text)
    return await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))


async def start(stage: Stage, begun: BegunTurn, call_id: str) -> Started | NotStarted:
    """Commit to running a call."""
    return await stage.do(lambda tx: start_call(tx, begun.held, call_id=call_id))


async def result(stage: Stage, begun: BegunTurn, call_id: str) -> Appended | CallAlreadyEnded:
    """Give a call its result."""
    message = result_message(call_id)
    return await stage.do(lambda tx: record_result(tx, begun.held, result=message))


async def fail(stage: Stage, begun: BegunTurn, failure: Failure, partial: NewMessage | None = None) -> str:
    """Let a turn fail."""
    return await stage.do(
        lambda tx: fail_turn(tx, begun.held, failure=failure, partial=partial, ids=stage.ids)
    )


async def renew(stage: Stage, begun: BegunTurn) -> Renewed:
    """Renew a turn."""
    return await stage.do(lambda tx: renew_turn(tx, begun.held))


async def ask(stage: Stage, begun: BegunTurn, call_id: str = "c") -> int:
    """Let a turn ask its person about a call."""
    return await stage.do(
        lambda tx: ask_approval(tx, begun.held, call_id=call_id, question="May I?", ids=stage.ids)
    )


async def roll_back(stage: Stage, begun: BegunTurn) -> str:
    """Roll a turn back."""
    return await stage.do(lambda tx: roll_back_turn(tx, begun.held, ids=stage.ids))


def outputs(messages: list[Message]) -> list[JsonValue]:
    """Return what calls gave back."""
    return [part.output for message in messages for part in message.parts if isinstance(part, ToolResultPart)]
