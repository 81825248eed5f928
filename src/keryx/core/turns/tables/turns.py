"""Turns, the text they have said so far, and the calls they made."""

from dataclasses import asdict
from typing import NamedTuple, TypedDict, Unpack

from keryx.clock import Micros
from keryx.core.context.rules.gauge import Gauge
from keryx.core.conversations.rules.archive import TurnLine
from keryx.core.conversations.rules.message import NewMessage, usage_of
from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.lease import Lease
from keryx.core.turns.rules.turn import turn_ended
from keryx.core.values.turn_states import StepEffect, StepState, TurnId, TurnPurpose, TurnState
from keryx.errors import NotFound
from keryx.store.codec import clean_columns, clean_text, from_json, source_from_json, to_json
from keryx.store.database import ReadTx, Tx


class Turn(NamedTuple):
    """A row of the table."""

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
        """Where the last message it answers came from; None for a turn nobody asked for."""
        return None if self.origin_json is None else source_from_json(self.origin_json)


class Trouble(NamedTuple):
    """Why what is waited for does not come: the turn's state, and the reason in words."""

    state: TurnState
    reason: str

    @property
    def told(self) -> str:
        """What people are told; a turn that runs says by itself when it goes on."""
        return self.reason if self.state == "running" else f"{self.reason} It will be tried again."


class Step(NamedTuple):
    """One call."""

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


def add_turn(
    tx: Tx,
    lease: Lease,
    *,
    branch_no: int,
    purpose: TurnPurpose,
    person_id: int | None,
    origin: Source | None,
) -> TurnId:
    """Add a running turn for the holder of the session and return its id."""
    row = tx.row(
        "turns.add",
        session_id=lease.session_id,
        branch_no=branch_no,
        purpose=purpose,
        holder=lease.holder,
        epoch=lease.epoch,
        person_id=person_id,
        origin=None if origin is None else to_json(origin.to_dict()),
    )
    assert row is not None
    return TurnId(row[0])


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
    """Return running turns whose lease is gone, oldest first."""
    return tx.all(Turn, "turns.list_orphans", limit=limit)


def set_prompt(tx: Tx, turn_id: int, *, model: str | None, prompt_hash: str, tools_hash: str) -> None:
    """Note what exactly a turn ran with."""
    tx.run(
        "turns.set_prompt",
        turn_id=turn_id,
        model=clean_text(model),
        prompt_hash=prompt_hash,
        tools_hash=tools_hash,
    )


def find_prompt(tx: ReadTx, turn_id: int) -> tuple[str | None, str, str] | None:
    """Return the model a turn asked and the hashes of its system prompt and its tools; None where it asked none."""
    row = tx.row("turns.find_prompt", turn_id=turn_id)
    return None if row is None else (row[0], row[1], row[2])


def set_gauge(tx: Tx, turn_id: int, gauge: Gauge) -> None:
    """Note what the turn's last question was made of."""
    tx.run(
        "turns.set_gauge",
        turn_id=turn_id,
        window=gauge.window,
        system=gauge.system,
        tools=gauge.tools,
        history=gauge.history,
        attachments=gauge.attachments,
    )


def find_gauge(tx: ReadTx, session_id: str) -> Gauge | None:
    """Return what the last question of a session was made of, or None."""
    row = tx.row("turns.find_gauge", session_id=session_id)
    if row is None:
        return None
    window, system, tools, history, attachments = row
    return Gauge(window=window, system=system, tools=tools, history=history, attachments=attachments)


def count_unsaid(tx: Tx, turn_id: int, answer: NewMessage) -> None:
    """Count what a turn used for an answer that is in no transcript."""
    tx.run(
        "turns.count_unsaid",
        turn_id=turn_id,
        **usage_of(answer),
    )


def request_stop(tx: Tx, session_id: str) -> bool:
    """Ask the live turn of a session to stop; say whether that is new."""
    return tx.run("turns.request_stop", session_id=session_id) > 0


def wait(tx: Tx, turn_id: int) -> None:
    """Let a running turn wait for a person."""
    tx.run("turns.wait", turn_id=turn_id)


def go_on(tx: Tx, turn_id: int, lease: Lease) -> None:
    """Let a waiting turn run again for its new holder."""
    tx.run("turns.go_on", turn_id=turn_id, holder=lease.holder, epoch=lease.epoch)


def take_over(tx: Tx, turn_id: int, lease: Lease) -> None:
    """Let whoever took the session end a running turn whose holder was lost."""
    tx.run("turns.take_over", turn_id=turn_id, holder=lease.holder, epoch=lease.epoch)


def move(tx: Tx, session_id: str, *, origin: Source, to: Source) -> None:
    """Let a session's turn that has not ended answer at another place than this."""
    tx.run(
        "turns.move",
        session_id=session_id,
        origin=to_json(origin.to_dict()),
        to_origin=to_json(to.to_dict()),
    )


def set_origin(tx: Tx, turn_id: int, *, origin: Source, person_id: int | None) -> None:
    """Note whom a turn answers last, and where."""
    tx.run("turns.set_origin", turn_id=turn_id, origin=to_json(origin.to_dict()), person_id=person_id)


def set_pause(tx: Tx, turn_id: int, reason: str | None) -> None:
    """Note why a running turn does nothing for now; None when it goes on."""
    tx.run("turns.set_pause", turn_id=turn_id, reason=clean_text(reason))


def find_trouble(tx: ReadTx, session_id: str) -> Trouble | None:
    """Return why what a session waits for does not come; None where nothing is wrong."""
    return tx.one(Trouble, "turns.find_trouble", session_id=session_id)


def end_turn(tx: Tx, turn_id: int, *, state: TurnState, reason: str | None = None) -> None:
    """End a turn for good and drop the text so far, which the transcript holds or nobody needs."""
    tx.run("turns.end", turn_id=turn_id, state=state, reason=clean_text(reason))
    drop_chunks(tx, turn_id)


def add_chunk(tx: Tx, turn_id: int, *, start: int, text: str) -> None:
    """Keep a piece of the text so far; the same piece again is no change."""
    tx.run("turns.add_chunk", turn_id=turn_id, start=start, text=to_json(text))


def drop_chunks(tx: Tx, turn_id: int) -> None:
    """Forget the text so far, which stands in the transcript now."""
    tx.run("turns.drop_chunks", turn_id=turn_id)


def list_speaking(tx: ReadTx, *, limit: int) -> list[Turn]:
    """Return running turns that have said something since their last step, longest first."""
    return tx.all(Turn, "turns.list_speaking", limit=limit)


def list_answering(tx: ReadTx, *, limit: int) -> list[Turn]:
    """Return running turns that answer somebody, longest first."""
    return tx.all(Turn, "turns.list_answering", limit=limit)


def list_stopping(tx: ReadTx, holder: str) -> list[TurnId]:
    """Return the running turns of a holder that are asked to stop."""
    return [TurnId(row[0]) for row in tx.rows("turns.list_stopping", holder=holder)]


def list_chunks(tx: ReadTx, turn_id: int, *, start: int = 0) -> list[tuple[int, str]]:
    """Return the pieces of the text so far from an offset on."""
    rows = tx.rows("turns.list_chunks", turn_id=turn_id, start=start)
    return [(offset, from_json(text)) for offset, text in rows]


class NewStep(TypedDict):
    """What ``add_step`` is told."""

    turn_id: int
    session_id: str
    call_id: str
    name: str
    effect: StepEffect
    idempotency_key: str
    call_seq: int


def add_step(tx: Tx, **step: Unpack[NewStep]) -> bool:
    """Add a call of a turn, after those it made before; False when the turn has made a call of this id."""
    return tx.run("turns.add_step", **(step | {"name": clean_text(step["name"])})) == 1


def get_step(tx: ReadTx, *, turn_id: int, call_id: str) -> Step:
    """Return one call of a turn."""
    row = tx.one(Step, "turns.find_step", turn_id=turn_id, call_id=call_id)
    if row is None:
        raise NotFound(f"Turn {turn_id} made no call {call_id!r}.")
    return row


def list_steps(tx: ReadTx, turn_id: int) -> list[Step]:
    """Return the calls of a turn in the order they were made."""
    return tx.all(Step, "turns.list_steps", turn_id=turn_id)


def list_open_steps(tx: ReadTx, session_id: str) -> list[Step]:
    """Return a session's calls that have no result yet, in the order they were made."""
    return tx.all(Step, "turns.list_open_steps", session_id=session_id)


def start_step(tx: Tx, *, turn_id: int, call_id: str) -> bool:
    """Commit to running a call; False for one that has a result, or has started and may run only once."""
    return tx.run("turns.start_step", turn_id=turn_id, call_id=call_id) == 1


def end_step(tx: Tx, *, turn_id: int, call_id: str, state: StepState, result_seq: int) -> bool:
    """Give a call its one result; False when it has one."""
    return tx.run("turns.end_step", turn_id=turn_id, call_id=call_id, state=state, result_seq=result_seq) == 1


def adopt_step(tx: Tx, step: Step, *, turn_id: int) -> None:
    """Let a turn go on with a call that a lost one left open."""
    tx.run("turns.adopt_step", from_turn_id=step.turn_id, call_id=step.call_id, turn_id=turn_id)


def add_imported(tx: Tx, session_id: str, line: TurnLine) -> int:
    """Add a turn that ran elsewhere and return its id; one that was under way there is lost here."""
    columns = asdict(line) | {"state": line.state if turn_ended(line.state) else "lost"}
    del columns["no"]
    columns["ended_at"] = line.begun_at if line.ended_at is None else line.ended_at
    turn_id: int = tx.value("turns.add_imported", session_id=session_id, **clean_columns(columns))
    return turn_id


def drop_steps_of_session(tx: Tx, session_id: str) -> None:
    """Delete the texts so far and the calls of the session's turns."""
    tx.run("turns.drop_chunks_of_session", session_id=session_id)
    tx.run("turns.drop_steps_of_session", session_id=session_id)


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the session's turns, which nothing may name any more."""
    tx.run("turns.drop_of_session", session_id=session_id)
