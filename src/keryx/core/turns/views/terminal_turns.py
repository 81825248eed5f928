"""Small questions of a terminal about its session: what became of a message or a turn."""

from keryx.core.conversations.rules.message import text_of
from keryx.core.conversations.tables import sessions
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.views import terminal_rows
from keryx.core.turns.views.ready_sessions import may_begin
from keryx.core.values.turn_states import TurnId, TurnState
from keryx.store.database import ReadTx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """The state of a turn, and the last text of it that is in the transcript."""

    state: TurnState
    text: str | None


def is_at_work(tx: ReadTx, session_id: str) -> bool:
    """Return whether a turn of a session runs, or may begin now."""
    turn = turns.find_live_turn(tx, session_id)
    return (turn is not None and turn.state == "running") or may_begin(tx, session_id)


def find_outcome(tx: ReadTx, turn_id: TurnId) -> TurnOutcome:
    """Return the state of a turn and its last stored text."""
    turn = turns.get_turn(tx, turn_id)
    parts = terminal_rows.last_words(
        tx, session_id=turn.session_id, branch_no=turn.branch_no, turn_id=turn_id
    )
    return TurnOutcome(state=turn.state, text=None if parts is None else text_of(parts))


def find_item(tx: ReadTx, inbox_id: int) -> inbox.InboxItem:
    """Return an accepted item with its fate, if that is decided."""
    item = inbox.find_item(tx, inbox_id)
    assert item is not None, "accepted items are kept"
    return item


def find_title(tx: ReadTx, session_id: str) -> str | None:
    """Return the title of a session, or None if it has none."""
    return sessions.get_session(tx, session_id).title
