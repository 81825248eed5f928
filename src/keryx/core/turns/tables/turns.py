"""Turns, their text so far, and their tool calls (steps)."""

from dataclasses import asdict
from typing import Final, NamedTuple, NotRequired, TypedDict, Unpack

from keryx.clock import Micros
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.conversations.rules.archive import TurnLine
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart, usage_of
from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.lease import Lease, TurnLease
from keryx.core.turns.rules.turn import turn_ended
from keryx.core.values.turn_states import StepEffect, StepState, TurnId, TurnPurpose, TurnState
from keryx.errors import NotFound
from keryx.store.codec import clean_columns, clean_text, from_json, source_from_json, source_to_json, to_json
from keryx.store.database import ReadTx, Tx

LISTED_MAX: Final = 200
UNDECLARED: Final[StepEffect] = "once"
"""The effect of a call without a declared effect: the call never runs twice."""


class Turn(NamedTuple):
    """A turn."""

    id: TurnId
    session_id: str
    branch_no: int
    state: TurnState
    purpose: TurnPurpose
    holder: str
    epoch: int
    person_id: int | None
    origin_json: str | None
    begun_at: Micros
    ended_at: Micros | None
    reason: str | None
    stop_requested_at: Micros | None

    @property
    def origin(self) -> Source | None:
        """The source of the last message that the turn answers; None for a turn without one."""
        return None if self.origin_json is None else source_from_json(self.origin_json)


class Trouble(NamedTuple):
    """Why an answer is late: the turn's state and the reason."""

    state: TurnState
    reason: str

    @property
    def text(self) -> str:
        """The text for people; a running turn reports by itself when it continues."""
        return self.reason if self.state == "running" else f"{self.reason} It will be tried again."


class AskedPrompt(NamedTuple):
    """What a turn sent its model: the hashes of the system prompt and the tools, and the time it told."""

    model: str | None
    prompt_hash: str
    tools_hash: str
    begun_at: Micros
    zone: str | None


class Step(NamedTuple):
    """A tool call of a turn."""

    turn_id: TurnId
    call_id: str
    no: int
    session_id: str
    name: str
    effect: StepEffect
    state: StepState
    idempotency_key: str
    call_seq: int
    result_seq: int | None
    starts: int


class NewTurn(TypedDict):
    """A turn that begins. Its agent is told the date and time in ``zone``."""

    branch_no: int
    purpose: TurnPurpose
    person_id: int | None
    origin: Source | None
    zone: NotRequired[str | None]


def add_turn(tx: Tx, lease: Lease, **turn: Unpack[NewTurn]) -> TurnId:
    """Add a running turn for the holder of the lease and return its id."""
    origin = turn["origin"]
    turn_id: TurnId = tx.value(
        "turns.add",
        session_id=lease.session_id,
        branch_no=turn["branch_no"],
        purpose=turn["purpose"],
        holder=lease.holder,
        epoch=lease.epoch,
        person_id=turn["person_id"],
        origin=None if origin is None else source_to_json(origin),
        zone=turn.get("zone"),
    )
    return turn_id


def get_turn(tx: ReadTx, turn_id: int) -> Turn:
    """Return a turn by id."""
    row = tx.one(Turn, "turns.find", turn_id=turn_id)
    if row is None:
        raise NotFound(f"There is no turn {turn_id}.")
    return row


def find_live_turn(tx: ReadTx, session_id: str) -> Turn | None:
    """Return the turn of a session that has not ended, or None."""
    return tx.one(Turn, "turns.find_live", session_id=session_id)


def list_orphans(tx: ReadTx, *, limit: int) -> list[Turn]:
    """Return running turns without a valid lease, in the order in which sessions are locked."""
    return tx.all(Turn, "turns.list_orphans", limit=limit)


def set_prompt(tx: Tx, turn_id: int, *, model: str | None, prompt_hash: str, tools_hash: str) -> None:
    """Record the model of a turn, and the hashes of its system prompt and its tools."""
    tx.run(
        "turns.set_prompt",
        turn_id=turn_id,
        model=clean_text(model),
        prompt_hash=prompt_hash,
        tools_hash=tools_hash,
    )


def find_prompt(tx: ReadTx, turn_id: int) -> AskedPrompt | None:
    """Return what a turn sent its model, or None without a model request."""
    return tx.one(AskedPrompt, "turns.find_prompt", turn_id=turn_id)


def list_times(
    tx: ReadTx, session_id: str, *, first: TurnId, last: TurnId
) -> list[tuple[TurnId, Micros, str]]:
    """Return id, begin and zone of a session's turns from one id to another, as far as a zone is recorded."""
    rows = tx.rows("turns.list_times", session_id=session_id, first_id=first, last_id=last)
    return [(TurnId(turn_id), begun_at, zone) for turn_id, begun_at, zone in rows]


def set_context_usage(tx: Tx, turn_id: int, usage: ContextUsage) -> None:
    """Record the token counts of the turn's last model request."""
    tx.run("turns.set_context_usage", turn_id=turn_id, **asdict(usage))


def find_context_usage(tx: ReadTx, session_id: str) -> ContextUsage | None:
    """Return the token counts of a session's last model request, or None."""
    return tx.one(ContextUsage, "turns.find_context_usage", session_id=session_id)


def add_usage(tx: Tx, turn_id: int, answer: NewMessage) -> None:
    """Add the usage of an answer that is in no transcript to its turn."""
    tx.run("turns.add_usage", turn_id=turn_id, **usage_of(answer))


def request_stop(tx: Tx, session_id: str) -> bool:
    """Ask the live turn of a session to stop; return False if it was asked before."""
    return tx.run("turns.request_stop", session_id=session_id) > 0


def wait(tx: Tx, turn_id: int) -> None:
    """Set a running turn to waiting for a person."""
    tx.run("turns.wait", turn_id=turn_id)


def resume(tx: Tx, turn_id: TurnId, lease: Lease) -> TurnLease:
    """Set a waiting turn to running for its new holder."""
    tx.run("turns.resume", turn_id=turn_id, holder=lease.holder, epoch=lease.epoch)
    return TurnLease(lease=lease, turn_id=turn_id)


def take_over(tx: Tx, turn_id: TurnId, lease: Lease) -> TurnLease:
    """Give a running turn to the new holder of its session."""
    tx.run("turns.take_over", turn_id=turn_id, holder=lease.holder, epoch=lease.epoch)
    return TurnLease(lease=lease, turn_id=turn_id)


def move(tx: Tx, session_id: str, *, origin: Source, to: Source) -> None:
    """Change the origin of a session's live turn, if it has this origin."""
    tx.run("turns.move", session_id=session_id, origin=source_to_json(origin), to_origin=source_to_json(to))


def set_origin(tx: Tx, turn_id: int, *, origin: Source, person_id: int | None) -> None:
    """Set the source and the person of the last message that a turn answers."""
    tx.run("turns.set_origin", turn_id=turn_id, origin=source_to_json(origin), person_id=person_id)


def set_pause(tx: Tx, turn_id: int, reason: str | None) -> None:
    """Set the reason of a running turn's pause; None ends the pause."""
    tx.run("turns.set_pause", turn_id=turn_id, reason=clean_text(reason))


def find_trouble(tx: ReadTx, session_id: str) -> Trouble | None:
    """Return why a session's answer is late, or None."""
    return tx.one(Trouble, "turns.find_trouble", session_id=session_id)


def end_turn(tx: Tx, turn_id: int, *, state: TurnState, reason: str | None = None) -> None:
    """End a turn and delete its text so far: the transcript has the text that is kept."""
    tx.run("turns.end", turn_id=turn_id, state=state, reason=clean_text(reason))
    drop_chunks(tx, turn_id)


def add_chunk(tx: Tx, turn_id: int, *, start: int, text: str) -> None:
    """Store a piece of the text so far; a repeated piece changes nothing."""
    tx.run("turns.add_chunk", turn_id=turn_id, start=start, text=to_json(text))


def drop_chunks(tx: Tx, turn_id: int) -> None:
    """Delete the text so far; the transcript has it now."""
    tx.run("turns.drop_chunks", turn_id=turn_id)


def list_speaking(tx: ReadTx) -> list[Turn]:
    """Return running turns with text since their last step."""
    return tx.all(Turn, "turns.list_speaking", limit=LISTED_MAX)


def list_answering(tx: ReadTx) -> list[Turn]:
    """Return running turns that answer a message, oldest first."""
    return tx.all(Turn, "turns.list_answering", limit=LISTED_MAX)


def list_stopping(tx: ReadTx, holder: str) -> list[TurnId]:
    """Return the running turns of a holder that were asked to stop."""
    return tx.values("turns.list_stopping", holder=holder)


def text_so_far(tx: ReadTx, turn_id: int, *, start: int = 0) -> str:
    """Return the text of a turn since its last step, from an offset on, as far as it is stored."""
    return "".join(map(from_json, tx.values("turns.list_chunks", turn_id=turn_id, start=start)))


def add_step(tx: Tx, turn: Turn, call: ToolCallPart, *, call_seq: int, idempotency_key: str) -> bool:
    """Add a call to a turn; return False if the turn has a call with this id."""
    added = tx.run(
        "turns.add_step",
        turn_id=turn.id,
        session_id=turn.session_id,
        call_id=call.call_id,
        name=clean_text(call.name),
        effect=call.effect or UNDECLARED,
        idempotency_key=idempotency_key,
        call_seq=call_seq,
    )
    return added == 1


def get_step(tx: ReadTx, *, turn_id: int, call_id: str) -> Step:
    """Return a call of a turn."""
    row = tx.one(Step, "turns.find_step", turn_id=turn_id, call_id=call_id)
    if row is None:
        raise NotFound(f"Turn {turn_id} has no call {call_id!r}.")
    return row


def list_steps(tx: ReadTx, turn_id: int) -> list[Step]:
    """Return the calls of a turn in their order."""
    return tx.all(Step, "turns.list_steps", turn_id=turn_id)


def list_open_steps(tx: ReadTx, session_id: str) -> list[Step]:
    """Return a session's calls without a result, in their order."""
    return tx.all(Step, "turns.list_open_steps", session_id=session_id)


def start_step(tx: Tx, *, turn_id: int, call_id: str) -> bool:
    """Start a call; return False if it has a result, has run and may run only once, or is not approved."""
    return tx.run("turns.start_step", turn_id=turn_id, call_id=call_id) == 1


def end_step(tx: Tx, *, turn_id: int, call_id: str, state: StepState, result_seq: int) -> bool:
    """Give a call its one result; return False if it has one."""
    return tx.run("turns.end_step", turn_id=turn_id, call_id=call_id, state=state, result_seq=result_seq) == 1


def adopt_step(tx: Tx, step: Step, *, turn_id: int) -> None:
    """Move an open call of a lost turn to another turn."""
    tx.run("turns.adopt_step", from_turn_id=step.turn_id, call_id=step.call_id, turn_id=turn_id)


def add_imported(tx: Tx, session_id: str, line: TurnLine) -> int:
    """Add a turn from an archive and return its id; a turn that had not ended is lost."""
    columns = asdict(line) | {"state": line.state if turn_ended(line.state) else "lost"}
    del columns["no"]
    columns["ended_at"] = line.begun_at if line.ended_at is None else line.ended_at
    return int(tx.value("turns.add_imported", session_id=session_id, **clean_columns(columns)))


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the session's turns with their calls and texts so far; no other row may refer to them any more."""
    tx.run("turns.drop_chunks_of_session", session_id=session_id)
    tx.run("turns.drop_steps_of_session", session_id=session_id)
    tx.run("turns.drop_of_session", session_id=session_id)
