"""How full the context of a session was when its model was last asked, and what its summaries used."""

from keryx.domain.gauge import Gauge
from keryx.store.database import ReadTx
from keryx.store.tables import sessions, turns

__all__ = ["show_gauge"]


def show_gauge(tx: ReadTx, session_id: str, *, person_id: int) -> Gauge | None:
    """Return what the last question was made of; None where no model was asked yet."""
    sessions.get_visible(tx, session_id, person_id=person_id)
    return turns.find_gauge(tx, session_id)
