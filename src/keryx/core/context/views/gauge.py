"""How full the context of a session was when its model was last asked, and what its summaries used."""

from keryx.core.context.rules.gauge import Gauge
from keryx.core.conversations.tables import sessions
from keryx.core.turns.tables import turns
from keryx.store.database import ReadTx

__all__ = ["show_gauge"]


def show_gauge(tx: ReadTx, session_id: str, *, person_id: int) -> Gauge | None:
    """Return what the last question was made of; None where no model was asked yet."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return turns.find_gauge(tx, session_id)
