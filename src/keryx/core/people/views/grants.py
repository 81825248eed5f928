"""What the owner granted to roles beyond the defaults."""

from keryx.core.people.rules.access import Grant
from keryx.core.people.tables import access
from keryx.store.database import ReadTx


def list_grants(tx: ReadTx) -> list[Grant]:
    """Return every grant."""
    return access.list_grants(tx)
