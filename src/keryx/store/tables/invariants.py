"""Rows that contradict each other: each statement lists what must never be found."""

from typing import Final, Literal, NamedTuple

from keryx.store.database import ReadTx

Rule = Literal["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]


class Contradiction(NamedTuple):
    """One row that must not be: in which session, if in one, and what it is about."""

    session_id: str | None
    subject: str


class Branched(NamedTuple):
    """A session whose path has to be followed to know what it shows."""

    session_id: str
    active_branch_no: int
    last_branch_no: int
    message_count: int


CHECKS: Final[dict[str, tuple[Rule, str]]] = {
    "invariants.claimed_by_nobody": ("I1", "inbox item {} is claimed by a turn that does not live"),
    "invariants.wrong_fate": ("I1", "inbox item {} has a fate that does not fit its state"),
    "invariants.answered_by_nobody": ("I1", "inbox item {} counts as answered, and no turn answered it"),
    "invariants.not_one_answer": ("I1", "turn {} does not answer exactly one of its items"),
    "invariants.failed_silently": ("I1", "inbox item {} failed without a word"),
    "invariants.waiting_in_bin": ("I1", "inbox item {} waits in the bin"),
    "invariants.replied_twice": ("I2", "a turn replied twice to {}"),
    "invariants.half_sent": ("I2", "delivery {} is in no state a delivery can be in"),
    "invariants.sent_side_by_side": ("I2", "two deliveries are being sent to {}"),
    "invariants.unheard": ("I1", "delivery {} waits for somebody who is gone"),
    "invariants.out_of_order": ("I3", "turn {} replied after the reply to a later message"),
    "invariants.crossed_keys": ("I4", "key {} shows what was said to others, or what was deleted"),
    "invariants.crossed_replies": ("I4", "delivery {} goes to others than those it was said to"),
    "invariants.crossed_rules": (
        "I4",
        "approval {} was given by somebody else's word, or by one for elsewhere",
    ),
    "invariants.fallen_epochs": ("I5", "turn {} has an epoch out of order"),
    "invariants.two_turns": ("I5", "{} turns live at once"),
    "invariants.idle_leases": ("I5", "{} holds the session and runs no turn"),
    "invariants.wrong_totals": ("I6", "the totals ({} messages) are not what the rows say"),
    "invariants.wrong_counts": ("I6", "the count of {} messages is not what the rows say"),
    "invariants.rootless_branches": ("I6", "branch {} goes on from a message that is not there"),
    "invariants.stray_messages": ("I6", "message {} is on a branch that is not there, or began after it"),
    "invariants.doubled_places": ("I6", "place {} holds more than one message"),
    "invariants.open_calls": ("I6", "call {} will never get a result"),
    "invariants.wrong_results": ("I6", "{} of the messages are not those of the steps"),
    "invariants.wrong_steps": ("I7", "call {} started too often, or is in a state it cannot be in"),
    "invariants.shared_keys": ("I7", "idempotency key {} is used for two calls"),
    "invariants.gaps_in_streams": ("I6", "the facts up to {} have a gap"),
    "invariants.gaps_in_personal_streams": ("I6", "the facts of person {} have a gap"),
    "invariants.untold_messages": ("I6", "the {} messages are not those the feed tells of"),
    "invariants.wrong_fires": ("I9", "a fire of schedule {} is not what became of its run"),
    "invariants.repeating_schedules": ("I9", "schedule {} is due at an instant already accounted for"),
}
"""The rule each statement is about, and what one of its rows means."""


def list_contradictions(tx: ReadTx, check: str, *, limit: int) -> list[Contradiction]:
    """Return rows that one of ``CHECKS`` finds."""
    return [Contradiction._make(row) for row in tx.rows(check, limit=limit)]


def list_branched(tx: ReadTx) -> list[Branched]:
    """Return the sessions that show a branch with a parent, or keep a summary."""
    return [Branched._make(row) for row in tx.rows("invariants.list_branched")]
