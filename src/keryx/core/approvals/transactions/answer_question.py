"""Answer a question that the agent put in its own words: what the person says next is the answer.

The words are kept with the question, so they outlive whatever becomes of the turn; the message itself is the item
that lets the waiting turn go on, and starts no other.
"""

from keryx.core.approvals.rules.approval import Decided, answer
from keryx.core.approvals.tables import approvals
from keryx.core.approvals.views.open_questions import find_question
from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.tables import feed
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.tables.turns import Turn
from keryx.store.database import Tx


def answer_question(tx: Tx, inbound: Inbound, *, turn: Turn, person_id: PersonId) -> int | None:
    """Take a message as the answer to what the session's waiting turn asked this person, and return its item.

    None where nothing was asked, the time is up, or the message has no words: then it is a message like any other. The
    session must be locked.
    """
    text = text_of(inbound.parts).strip()
    record = find_question(tx, turn_id=turn.id, person_id=person_id) if text else None
    if record is None:
        return None
    outcome = answer(record.approval, "approved", person_id=person_id, now=tx.now)
    if not isinstance(outcome, Decided):
        return None
    approvals.decide(tx, outcome.approval)
    approvals.keep_answer(tx, record.id, text)
    # The turn goes on where it was answered, which may be another place than where it was asked.
    turns.set_origin(tx, turn.id, origin=inbound.source, person_id=person_id)
    inbox_id = inbox.add_item(
        tx,
        session_id=turn.session_id,
        kind="approval",
        source=inbound.source,
        ref=inbound.ref,
        parts=inbound.parts,
        person_id=person_id,
        sent_at=inbound.sent_at,
    )
    feed.add_event(tx, turn.session_id, "approval", record.id)
    feed.add_event(tx, turn.session_id, "inbox", inbox_id)
    return inbox_id
