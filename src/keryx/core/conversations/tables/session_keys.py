"""Session keys: which session is the current one of a surface."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import Source
from keryx.store.codec import source_from_json, to_json
from keryx.store.database import RaceLost, ReadTx, Tx


class KeyRecord(NamedTuple):
    """A row of the table."""

    key: str
    session_id: str
    source_json: str
    audience_id: int
    since_at: Micros

    @property
    def source(self) -> Source:
        """The surface, as it was when the key was last pointed."""
        return source_from_json(self.source_json)


def find_key(tx: ReadTx, key: SessionKey) -> KeyRecord | None:
    """Return where a key points, or None for one never seen or detached."""
    return tx.one(KeyRecord, "session_keys.find", key=key)


def add_key(tx: Tx, key: SessionKey, *, session_id: str, source: Source, audience_id: int) -> None:
    """Point a new key to a session; two transactions that both saw none are run one after the other."""
    added = tx.run(
        "session_keys.add",
        key=key,
        session_id=session_id,
        source=to_json(source.to_dict()),
        audience_id=audience_id,
    )
    if not added:
        raise RaceLost


def point_key(tx: Tx, key: SessionKey, *, session_id: str, source: Source, audience_id: int) -> None:
    """Point a key, new or not, to a session."""
    tx.run(
        "session_keys.point",
        key=key,
        session_id=session_id,
        source=to_json(source.to_dict()),
        audience_id=audience_id,
    )


def list_keys(tx: ReadTx, session_id: str) -> list[KeyRecord]:
    """Return the surfaces on which a session is the current one, oldest first."""
    return tx.all(KeyRecord, "session_keys.list_of_session", session_id=session_id)


def remove_keys(tx: Tx, session_id: str) -> None:
    """Take a session off every surface."""
    tx.run("session_keys.remove_of_session", session_id=session_id)


def remove_key(tx: Tx, key: SessionKey) -> None:
    """Forget a key."""
    tx.run("session_keys.remove", key=key)
