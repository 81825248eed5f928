"""The inbox: the one way in. Each item has one fate."""

from typing import NamedTuple, Required, TypedDict, Unpack

from keryx.clock import Micros
from keryx.core.conversations.rules.message import Part, decode_parts, encode_parts
from keryx.core.conversations.rules.source import Source
from keryx.core.turns.rules.busy import BusyMode, WaitingMessage
from keryx.core.turns.rules.inbox import (
    NO_PLATFORM,
    OWN_PURPOSES,
    Fate,
    InboxKind,
    InboxState,
    ItemPurpose,
)
from keryx.store.codec import clean_text, source_from_json, to_json
from keryx.store.database import RaceLost, ReadTx, Tx


class InboxItem(NamedTuple):
    """A row of the table."""

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
        """Where it came from."""
        return source_from_json(self.source_json)

    @property
    def is_own(self) -> bool:
        """Whether Keryx asks for it by itself, and no person waits for it."""
        return self.purpose in OWN_PURPOSES

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it says."""
        return decode_parts(self.body)

    @property
    def waiting(self) -> WaitingMessage:
        """As much of it as the busy rules need."""
        return WaitingMessage(
            id=self.id,
            kind=self.kind,
            mode=self.busy_mode,
            received_at=self.received_at,
            person_id=self.person_id,
        )


class ItemFate(NamedTuple):
    """What became of one item: no fate while it waits or is being answered."""

    id: int
    ref: str
    kind: InboxKind
    fate: Fate | None
    session_id: str
    turn_id: int | None
    """The last turn that had it."""


class KnownItem(NamedTuple):
    """An item that is already there."""

    id: int
    session_id: str


def find_by_ref(tx: ReadTx, *, platform: str, account: str, ref: str) -> KnownItem | None:
    """Return the item made of this delivery before, or None."""
    return tx.one(KnownItem, "inbox.find_by_ref", platform=platform, account=account, ref=ref)


def find_unsent(tx: ReadTx, ref: str) -> KnownItem | None:
    """Return the item with this ref that Keryx added itself, or None."""
    return find_by_ref(tx, platform=NO_PLATFORM, account="", ref=ref)


class NewItem(TypedDict, total=False):
    """What ``add_item`` is told. ``is_sent`` is False for what Keryx adds itself: no platform sent it."""

    session_id: Required[str]
    kind: Required[InboxKind]
    source: Required[Source]
    ref: Required[str]
    parts: Required[tuple[Part, ...]]
    person_id: Required[int | None]
    purpose: ItemPurpose
    is_sent: bool
    busy_mode: BusyMode
    sent_at: Micros | None
    seq: int
    fate: Fate | None


def add_item(tx: Tx, **item: Unpack[NewItem]) -> int:
    """Add an item and return its id; one that is there already raises ``Contended``, so look first.

    An item with a ``seq`` stands in the transcript already; one with a ``fate`` is done as it is added.
    """
    source = item["source"]
    fate = item.get("fate")
    is_sent = item.get("is_sent", True)
    row = tx.row(
        "inbox.add",
        session_id=item["session_id"],
        kind=item["kind"],
        purpose=item.get("purpose", "answer"),
        state="ready" if fate is None else "done",
        busy_mode=item.get("busy_mode", "queue"),
        platform=source.platform if is_sent else NO_PLATFORM,
        account=(source.account or "") if is_sent else "",
        ref=item["ref"],
        person_id=item["person_id"],
        source=to_json(source.to_dict()),
        parts=encode_parts(item["parts"]),
        sent_at=item.get("sent_at"),
        ready_at=tx.now,
        seq=item.get("seq"),
        fate=fate,
        ended_at=None if fate is None else tx.now,
    )
    if row is None:
        raise RaceLost
    inbox_id: int = row[0]
    return inbox_id


def find_item(tx: ReadTx, inbox_id: int) -> InboxItem | None:
    """Return one item, or None."""
    return tx.one(InboxItem, "inbox.find", inbox_id=inbox_id)


def list_tasks(tx: ReadTx, session_id: str) -> list[InboxItem]:
    """Return the tasks without a fate that a session, or one below it, gave away."""
    return tx.all(InboxItem, "inbox.list_tasks", session_id=session_id)


def list_commands(tx: ReadTx, *, limit: int) -> list[InboxItem]:
    """Return commands that wait for the answer of a surface, oldest first."""
    return tx.all(InboxItem, "inbox.list_commands", limit=limit)


def list_ready(tx: ReadTx, session_id: str) -> list[InboxItem]:
    """Return what waits in a session, oldest first."""
    return tx.all(InboxItem, "inbox.list_ready", session_id=session_id)


def list_of_turn(tx: ReadTx, turn_id: int) -> list[InboxItem]:
    """Return what a turn has claimed and not ended, oldest first."""
    return tx.all(InboxItem, "inbox.list_of_turn", turn_id=turn_id)


def count_open(tx: ReadTx, session_id: str) -> int:
    """Count a session's items without a fate; Keryx's own requests keep nobody waiting and do not count."""
    count: int = tx.value("inbox.count_open", session_id=session_id)
    return count


def list_fates(tx: ReadTx, *, platform: str, after: int, limit: int) -> list[ItemFate]:
    """Return what came in from a platform after an item, oldest first."""
    return tx.all(ItemFate, "inbox.list_fates", platform=platform, after=after, limit=limit)


def count_unsettled(tx: ReadTx, *, platform: str) -> int:
    """Count a platform's items without a fate."""
    count: int = tx.value("inbox.count_unsettled", platform=platform)
    return count


def count_flushing(tx: ReadTx) -> int:
    """Count the requests to flush, of any session, that have no fate yet."""
    count: int = tx.value("inbox.count_flushing")
    return count


def claim(tx: Tx, item: InboxItem, *, turn_id: int, seq: int | None) -> None:
    """Give a ready item to a turn, at its place in the transcript."""
    tx.run("inbox.claim", inbox_id=item.id, turn_id=turn_id, seq=seq)


def postpone(tx: Tx, session_id: str, *, ready_at: Micros) -> None:
    """Look at a session's waiting items again at a later time."""
    tx.run("inbox.postpone", session_id=session_id, ready_at=ready_at)


def give_back(tx: Tx, inbox_id: int, *, ready_at: Micros, seq: int | None, uncounted: bool = False) -> None:
    """Make a claimed item ready again; with a ``seq`` it stays where it is in the transcript.

    ``uncounted`` takes the attempt back: it was not the message's fault.
    """
    tx.run("inbox.give_back", inbox_id=inbox_id, ready_at=ready_at, seq=seq, uncounted=int(uncounted))


def finish(tx: Tx, inbox_id: int, *, fate: Fate, note: str | None = None) -> None:
    """Give an item its fate; a second one changes nothing."""
    state = "dead" if fate == "failed" else "done"
    tx.run("inbox.finish", inbox_id=inbox_id, state=state, fate=fate, fate_note=clean_text(note))


def list_sessions_of(tx: ReadTx, source: Source) -> list[str]:
    """Return the sessions that the account of a place said something to."""
    rows = tx.rows("inbox.list_sessions_of", platform=source.platform, account=source.account or "")
    return [session_id for (session_id,) in rows]


def move(tx: Tx, session_id: str, *, source: Source, to: Source) -> None:
    """Let what a place said to a session, and has no fate, be answered at another."""
    tx.run(
        "inbox.move",
        session_id=session_id,
        source=to_json(source.to_dict()),
        to_source=to_json(to.to_dict()),
    )


def drop_of_session(tx: Tx, session_id: str) -> None:
    """Delete what came in for the session."""
    tx.run("inbox.drop_of_session", session_id=session_id)
