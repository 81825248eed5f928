"""Check the promises: compare the platform's records, the agents' effects and the store's fates.

Pure. Each check reads all shown messages, not only the expected ones, and yields one sentence for each breach.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from keryx.core.deliveries.rules.delivery import MAYBE_REPEATED_MARK
from keryx.core.turns.rules.inbox import Fate
from keryx.testing.torture.effects import Effect
from keryx.testing.torture.records import PlatformRecords, ShownMessage, UserMessage
from keryx.testing.torture.texts import canaries, ending, read_answer
from keryx.values import dataclass

FAILURE: Final = "I could not answer:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thaw:
    """A gateway that resumed at ``at`` after its leases expired, while another one held its account until ``until``."""

    node: str
    at: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All records at the end of a run."""

    records: PlatformRecords
    effects: Sequence[Effect] = ()
    fates: Sequence[tuple[str, Fate | None]] = ()
    """The fate of each message in the store, by its id."""
    thaws: Sequence[Thaw] = ()
    invariants: Sequence[str] = ()
    """The result of ``check_invariants``."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """The exit code of each gateway after SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The pieces of one reply, in the order of their first appearance."""

    pieces: tuple[ShownMessage, ...]

    @property
    def chat(self) -> str:
        """The chat of the reply."""
        return self.pieces[0].chat

    @property
    def text(self) -> str:
        """The text of all pieces."""
        return "\n\n".join(piece.text for piece in self.pieces)

    @property
    def answers(self) -> str | None:
        """The id of the message that the reply answers."""
        return next((piece.reply_to for piece in self.pieces if piece.reply_to is not None), None)

    @property
    def quoted(self) -> list[str]:
        """The tokens that the reply quotes."""
        return read_answer(self.pieces[0].text)

    @property
    def is_failure(self) -> bool:
        """Whether the reply is a notice of a failure."""
        return self.pieces[0].text.startswith(FAILURE)

    @property
    def is_marked(self) -> bool:
        """Whether the reply is marked as possibly repeated."""
        return any(MAYBE_REPEATED_MARK in piece.text for piece in self.pieces)


def check_all(evidence: Evidence) -> dict[str, list[str]]:
    """Return the breaches of each promise."""
    return {promise: list(check(evidence)) for promise, check in CHECKS.items()}


def replies_of(records: PlatformRecords) -> list[Reply]:
    """Return the shown replies, in the order of their first pieces."""
    pieces: dict[str, list[ShownMessage]] = defaultdict(list)
    for shown in records.shown:
        pieces[shown.key].append(shown)
    return [Reply(pieces=tuple(each)) for each in pieces.values()]


def check_fates(evidence: Evidence) -> Iterator[str]:
    """Every accepted message has one fate, and only sent messages have a fate."""
    records = evidence.records
    known = Counter(message_id for message_id, _ in evidence.fates)
    fates = dict(evidence.fates)
    for message in records.messages.values():
        if message.id not in records.accepted:
            yield f"{message.id} was never accepted, though it was sent repeatedly"
        elif known[message.id] != 1:
            yield f"{message.id} was accepted, and the store has {known[message.id]} rows of it"
        elif fates[message.id] is None:
            yield f"{message.id} was accepted and has no fate"
        elif (fates[message.id] == "command") != (message.kind == "stop"):
            yield f"{message.id} is a {message.kind} and its fate is {fates[message.id]}"
    yield from (
        f"{message_id} is in the store but was never sent" for message_id in known - records.messages.keys()
    )


def check_replies(evidence: Evidence) -> Iterator[str]:
    """Every message has exactly the replies that its fate requires; an extra reply must be marked as repeated."""
    records = evidence.records
    fates = dict(evidence.fates)
    replies = replies_of(records)
    unmarked = [reply for reply in replies if not reply.is_marked]
    quoted = Counter(token for reply in unmarked for token in reply.quoted)
    to: dict[str | None, list[Reply]] = defaultdict(list)
    for reply in unmarked:
        to[reply.answers].append(reply)
        if reply.answers not in records.messages:
            yield f"{reply.pieces[0].id} replies to an unknown message: {reply.text[:80]!r}"
    for message in records.messages.values():
        fate = fates.get(message.id)
        if message.id in records.accepted and fate is not None:
            yield from _check_reply(message, fate, to[message.id], quoted[message.token])
    yield from _check_failures(records, fates, to)
    for reply in replies:
        yield from _check_pieces(reply, records)


def _check_reply(message: UserMessage, fate: Fate, replies: list[Reply], quoted: int) -> Iterator[str]:
    answers = [reply for reply in replies if reply.quoted]
    wanted_replies = {"answered": 1, "merged": 0, "cancelled": 0, "failed": len(replies), "command": 1}[fate]
    if len(replies) != wanted_replies:
        yield f"{message.id} was {fate} and has {len(replies)} replies"
    if fate in ("answered", "merged") and quoted != 1:
        yield f"{message.id} was {fate} and {quoted} answers quote it"
    if fate in ("cancelled", "failed") and quoted > 1:
        yield f"{message.id} was {fate} and {quoted} answers quote it"
    if fate == "answered" and not any(message.token in reply.quoted for reply in answers):
        yield f"{message.id} got an answer that does not quote it"


def _check_failures(
    records: PlatformRecords, fates: Mapping[str, Fate | None], to: Mapping[str | None, list[Reply]]
) -> Iterator[str]:
    """A failed turn has one notice, in reply to its last message."""
    by_chat: dict[str, list[UserMessage]] = defaultdict(list)
    for message in records.messages.values():
        if fates.get(message.id) == "failed":
            by_chat[message.chat].append(message)
    for failed in by_chat.values():
        is_notified = False
        for message in sorted(failed, key=lambda each: each.no, reverse=True):
            notices = [reply for reply in to[message.id] if reply.is_failure]
            if len(notices) > 1 or len(to[message.id]) > len(notices):
                yield f"{message.id} failed and has {len(to[message.id])} replies"
            is_notified = is_notified or bool(notices)
            if not is_notified:
                yield f"{message.id} failed without a notice"


def _check_pieces(reply: Reply, records: PlatformRecords) -> Iterator[str]:
    first = reply.pieces[0]
    numbers = [piece.piece for piece in reply.pieces]
    if numbers != list(range(len(numbers))):
        yield f"the pieces of {first.key} were shown in the order {numbers}"
    if reply.quoted and not reply.text.removesuffix(MAYBE_REPEATED_MARK).rstrip().endswith(
        ending(reply.quoted[-1])
    ):
        yield f"{first.id} in {first.chat} was cut off"
    message = records.messages.get(reply.answers or "")
    if message is not None and message.kind != "stop" and not reply.quoted and not reply.is_failure:
        yield f"{first.id} is not an answer to {message.id}: {first.text[:80]!r}"


def check_crossing(evidence: Evidence) -> Iterator[str]:
    """No chat shows text from another chat."""
    records = evidence.records
    chats = {message.token: message.chat for message in records.messages.values() if message.token}
    for shown in records.shown:
        strange = canaries(shown.text) - {records.canaries.get(shown.chat)}
        strange |= {token for token in read_answer(shown.text) if chats.get(token) != shown.chat}
        message = records.messages.get(shown.reply_to or "")
        if message is not None and message.chat != shown.chat:
            strange.add(message.id)
        if strange:
            yield f"{shown.id} in {shown.chat} mentions {', '.join(sorted(strange))}"


def check_order(evidence: Evidence) -> Iterator[str]:
    """In each chat, replies come in the order of the questions; commands are answered at once."""
    records = evidence.records
    last: dict[str, UserMessage] = {}
    for reply in replies_of(records):
        message = records.messages.get(reply.answers or "")
        if message is None or message.kind == "stop" or reply.is_marked:
            continue
        before = last.get(reply.chat)
        if before is not None and message.no < before.no:
            yield f"in {reply.chat} the reply to {message.id} came after the one to {before.id}"
        last[reply.chat] = message


def check_effects(evidence: Evidence) -> Iterator[str]:
    """A call that may run only once ran at most once for its key and its question."""
    once = [effect for effect in evidence.effects if effect.kind == "once"]
    for what, times in (Counter(each.key for each in once) | Counter(each.token for each in once)).items():
        if times > 1:
            yield f"the call of {what} ran {times} times, but may run only once"


def check_stale(evidence: Evidence) -> Iterator[str]:
    """A gateway that resumes after its leases have expired sends nothing."""
    for thaw in evidence.thaws:
        for shown in evidence.records.shown:
            if shown.node == thaw.node and thaw.at <= shown.at <= thaw.until:
                yield f"{thaw.node} was frozen beyond its lease, resumed, and sent {shown.id}"


def check_rules(evidence: Evidence) -> Iterator[str]:
    """The store's invariants hold, callbacks are signed, and gateways exit with code 0."""
    yield from evidence.invariants
    yield from evidence.records.violations
    yield from (
        f"{node} exited with code {code} after SIGTERM" for node, code in evidence.ends.items() if code
    )


Check = Callable[[Evidence], Iterator[str]]

CHECKS: Final[dict[str, Check]] = {
    "every accepted message has one fate": check_fates,
    "every message has one reply": check_replies,
    "no text reached another chat": check_crossing,
    "replies came in order": check_order,
    "calls that may run once ran once": check_effects,
    "a gateway without its lease sent nothing": check_stale,
    "the store keeps its invariants": check_rules,
}
"""The promises and their checks."""
