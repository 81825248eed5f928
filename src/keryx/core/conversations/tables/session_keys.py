"""Session keys. A key points to the current session of a surface."""

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
        """The source of the last call that pointed the key."""
        return source_from_json(self.source_json)


def find_key(tx: ReadTx, key: SessionKey) -> KeyRecord | None:
    """Return the row of a key, or None if the key points to no session."""
    return tx.one(KeyRecord, "session_keys.find", key=key)


def add_key(tx: Tx, key: SessionKey, *, session_id: str, source: Source, audience_id: int) -> None:
    """Point a new key to a session. Raise ``RaceLost`` if the key is in use."""
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
    """Point a new or an existing key to a session."""
    tx.run(
        "session_keys.point",
        key=key,
        session_id=session_id,
        source=to_json(source.to_dict()),
        audience_id=audience_id,
    )


def list_keys(tx: ReadTx, session_id: str) -> list[KeyRecord]:
    """Return the keys that point to a session, oldest first."""
    return tx.all(KeyRecord, "session_keys.list_of_session", session_id=session_id)


def remove_keys(tx: Tx, session_id: str) -> None:
    """Remove all keys that point to a session."""
    tx.run("session_keys.remove_of_session", session_id=session_id)


def remove_key(tx: Tx, key: SessionKey) -> None:
    """Remove a key."""
    tx.run("session_keys.remove", key=key)
