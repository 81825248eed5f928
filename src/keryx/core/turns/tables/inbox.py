"""The inbox. Each item ends with one fate."""

from typing import Final, NamedTuple, Required, TypedDict, Unpack

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, decode_parts, encode_parts
from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.busy import BusyMode, WaitingMessage
from keryx.core.turns.rules.inbox import NO_PLATFORM, Fate, InboxKind, InboxState, ItemPurpose
from keryx.store.codec import clean_text, source_from_json, source_to_json
from keryx.store.database import RaceLost, ReadTx, Tx

COMMANDS_MAX: Final = 50


class InboxItem(NamedTuple):
    """An inbox item."""

    id: int
    session_id: str
    kind: InboxKind
    purpose: ItemPurpose
    state: InboxState
    busy_mode: BusyMode
    platform: str
    account: str
    ref: str
    person_id: int | None
    source_json: str
    body: str
    received_at: Micros
    ready_at: Micros
    turn_id: int | None
    seq: int | None
    attempts: int
    fate: Fate | None
    fate_note: str | None

    @property
    def source(self) -> Source:
        """Where the item came from."""
        return source_from_json(self.source_json)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content of the item."""
        return decode_parts(self.body)

    @property
    def waiting(self) -> WaitingMessage:
        """The fields that the busy rules need."""
        return WaitingMessage(
            id=self.id,
            kind=self.kind,
            mode=self.busy_mode,
            received_at=self.received_at,
            person_id=self.person_id,
        )


class ItemFate(NamedTuple):
    """An item with its fate; the fate is None while the item waits or a turn answers it."""

    id: int
    ref: str
    kind: InboxKind
    fate: Fate | None
    session_id: str
    turn_id: int | None
    """The last turn that claimed the item."""


def find_by_ref(tx: ReadTx, *, platform: str, account: str, ref: str) -> InboxItem | None:
    """Return the item of this platform message, or None."""
    return tx.one(InboxItem, "inbox.find_by_ref", platform=platform, account=account, ref=ref)


def find_internal(tx: ReadTx, ref: str) -> InboxItem | None:
    """Return the internal item with this ref, or None."""
    return find_by_ref(tx, platform=NO_PLATFORM, account="", ref=ref)


class NewItem(TypedDict, total=False):
    """The arguments of ``add_item``; an internal item comes from Keryx itself, not from a platform."""

    session_id: Required[str]
    kind: Required[InboxKind]
    source: Required[Source]
    ref: Required[str]
    parts: Required[tuple[Part, ...]]
    person_id: Required[int | None]
    purpose: ItemPurpose
    is_internal: bool
    busy_mode: BusyMode
    sent_at: Micros | None
    seq: int
    fate: Fate | None


def add_item(tx: Tx, **item: Unpack[NewItem]) -> int:
    """Add an item and return its id. Look for the ref first: a repeated one raises ``RaceLost``.

    An item with a ``seq`` is in the transcript already. An item with a ``fate`` is done from the start.
    """
    source = item["source"]
    fate = item.get("fate")
    is_internal = item.get("is_internal", False)
    inbox_id: int | None = tx.value(
        "inbox.add",
        session_id=item["session_id"],
        kind=item["kind"],
        purpose=item.get("purpose", "answer"),
        state="ready" if fate is None else "done",
        busy_mode=item.get("busy_mode", "queue"),
        platform=NO_PLATFORM if is_internal else source.platform,
        account="" if is_internal else source.account or "",
        ref=item["ref"],
        person_id=item["person_id"],
        source=source_to_json(source),
        parts=encode_parts(item["parts"]),
        sent_at=item.get("sent_at"),
        ready_at=tx.now,
        seq=item.get("seq"),
        fate=fate,
        ended_at=None if fate is None else tx.now,
    )
    if inbox_id is None:
        raise RaceLost
    return inbox_id


def find_item(tx: ReadTx, inbox_id: int) -> InboxItem | None:
    """Return an item, or None."""
    return tx.one(InboxItem, "inbox.find", inbox_id=inbox_id)


def list_tasks(tx: ReadTx, session_id: str) -> list[InboxItem]:
    """Return the open tasks that a session, or a session below it, delegated."""
    return tx.all(InboxItem, "inbox.list_tasks", session_id=session_id)


def list_commands(tx: ReadTx) -> list[InboxItem]:
    """Return commands that wait for a surface's answer, oldest first."""
    return tx.all(InboxItem, "inbox.list_commands", limit=COMMANDS_MAX)


def list_ready(tx: ReadTx, session_id: str) -> list[InboxItem]:
    """Return the ready items of a session, oldest first."""
    return tx.all(InboxItem, "inbox.list_ready", session_id=session_id)


def list_of_turn(tx: ReadTx, turn_id: int) -> list[InboxItem]:
    """Return the items that a turn has claimed and not ended, oldest first."""
    return tx.all(InboxItem, "inbox.list_of_turn", turn_id=turn_id)


def count_open(tx: ReadTx, session_id: str) -> int:
    """Return the number of a session's open items, without requests of Keryx itself."""
    return int(tx.value("inbox.count_open", session_id=session_id))


def list_fates(tx: ReadTx, *, platform: str, after: int, limit: int) -> list[ItemFate]:
    """Return a platform's items after an id, oldest first."""
    return tx.all(ItemFate, "inbox.list_fates", platform=platform, after=after, limit=limit)


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Return the number of a platform's open items."""
    return int(tx.value("inbox.count_unsettled", platform=platform))


def count_flushing(tx: ReadTx) -> int:
    """Return the number of open flush requests of all sessions."""
    return int(tx.value("inbox.count_flushing"))


def claim(tx: Tx, item: InboxItem, *, turn_id: int, seq: int | None) -> None:
    """Give a ready item to a turn; ``seq`` is its place in the transcript."""
    tx.run("inbox.claim", inbox_id=item.id, turn_id=turn_id, seq=seq)


def postpone(tx: Tx, session_id: str, *, ready_at: Micros) -> None:
    """Delay a session's ready items."""
    tx.run("inbox.postpone", session_id=session_id, ready_at=ready_at)


def give_back(tx: Tx, inbox_id: int, *, ready_at: Micros, seq: int | None, uncounted: bool = False) -> None:
    """Make a claimed item ready again; with a ``seq`` it stays in the transcript.

    ``uncounted`` does not count the attempt.
    """
    tx.run("inbox.give_back", inbox_id=inbox_id, ready_at=ready_at, seq=seq, uncounted=int(uncounted))


def finish(tx: Tx, inbox_id: int, *, fate: Fate, note: str | None = None) -> None:
    """Give an open item its fate."""
    state = "dead" if fate == "failed" else "done"
    tx.run("inbox.finish", inbox_id=inbox_id, state=state, fate=fate, fate_note=clean_text(note))


def list_sessions_of(tx: ReadTx, source: Source) -> list[str]:
    """Return the sessions that the account of a source sent items to."""
    return tx.values("inbox.list_sessions_of", platform=source.platform, account=source.account or "")


def move(tx: Tx, session_id: str, *, source: Source, to: Source) -> None:
    """Change the source of a session's open items from this source."""
    tx.run("inbox.move", session_id=session_id, source=source_to_json(source), to_source=source_to_json(to))


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete the session's items."""
    tx.run("inbox.drop_of_session", session_id=session_id)
