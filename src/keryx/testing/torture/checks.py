"""Whether the promises held: the platform's books, the agents' deeds and the store's fates against each other.

Pure. Each check looks at everything that was said, not only at what was expected, and yields a sentence a breach.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from keryx.domain.inbox import Fate
from keryx.domain.outbox import MAYBE_REPEATED_MARK
from keryx.testing.torture.books import Asked, Books, Shown
from keryx.testing.torture.effects import Effect
from keryx.testing.torture.words import canaries, ending, read_answer
from keryx.values import dataclass

FAILURE: Final = "I could not answer:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thaw:
    """A gateway that was frozen beyond its leases and goes on, while another one holds its account until ``until``."""

    node: str
    at: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is known at the end."""

    books: Books
    effects: Sequence[Effect] = ()
    fates: Sequence[tuple[str, Fate | None]] = ()
    """What the store says became of each message, by its id."""
    thaws: Sequence[Thaw] = ()
    invariants: Sequence[str] = ()
    """What ``check_invariants`` found."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """How each gateway left when it was asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The pieces of one reply, in the order they were first shown."""

    pieces: tuple[Shown, ...]

    @property
    def chat(self) -> str:
        """Where it was shown."""
        return self.pieces[0].chat

    @property
    def text(self) -> str:
        """All of it."""
        return "\n\n".join(piece.text for piece in self.pieces)

    @property
    def answers(self) -> str | None:
        """The id of the message it replies to."""
        return next((piece.reply_to for piece in self.pieces if piece.reply_to is not None), None)

    @property
    def quoted(self) -> list[str]:
        """The tokens it quotes."""
        return read_answer(self.pieces[0].text)

    @property
    def is_failure(self) -> bool:
        """Whether it says that there is no answer."""
        return self.pieces[0].text.startswith(FAILURE)

    @property
    def is_marked(self) -> bool:
        """Whether it says that it may be a repetition."""
        return any(MAYBE_REPEATED_MARK in piece.text for piece in self.pieces)


def check_all(evidence: Evidence) -> dict[str, list[str]]:
    """Return the breaches of each promise; none is what there should be."""
    return {promise: list(check(evidence)) for promise, check in CHECKS.items()}


def replies_of(books: Books) -> list[Reply]:
    """Return what was shown, put together, in the order of first pieces."""
    pieces: dict[str, list[Shown]] = defaultdict(list)
    for shown in books.shown:
        pieces[shown.key].append(shown)
    return [Reply(pieces=tuple(each)) for each in pieces.values()]


def check_fates(evidence: Evidence) -> Iterator[str]:
    """Every message that was taken has one fate, and only messages that were sent have any."""
    books = evidence.books
    known = Counter(message_id for message_id, _ in evidence.fates)
    fates = dict(evidence.fates)
    for asked in books.asked.values():
        if asked.id not in books.taken:
            yield f"{asked.id} was never taken, though it was sent again and again"
        elif known[asked.id] != 1:
            yield f"{asked.id} was taken, and the store has {known[asked.id]} of it"
        elif fates[asked.id] is None:
            yield f"{asked.id} was taken and has no fate"
        elif (fates[asked.id] == "command") != (asked.kind == "stop"):
            yield f"{asked.id} is a {asked.kind} and its fate is {fates[asked.id]}"
    yield from (
        f"{message_id} is in the store and nobody sent it" for message_id in known - books.asked.keys()
    )


def check_replies(evidence: Evidence) -> Iterator[str]:
    """Every message was replied to exactly once, as its fate says; an extra reply only if it says so itself."""
    books = evidence.books
    fates = dict(evidence.fates)
    replies = replies_of(books)
    unmarked = [reply for reply in replies if not reply.is_marked]
    quoted = Counter(token for reply in unmarked for token in reply.quoted)
    to: dict[str | None, list[Reply]] = defaultdict(list)
    for reply in unmarked:
        to[reply.answers].append(reply)
        if reply.answers not in books.asked:
            yield f"{reply.pieces[0].id} replies to nothing that was said: {reply.text[:80]!r}"
    for asked in books.asked.values():
        fate = fates.get(asked.id)
        if asked.id in books.taken and fate is not None:
            yield from _check_reply(asked, fate, to[asked.id], quoted[asked.token])
    yield from _check_failures(books, fates, to)
    for reply in replies:
        yield from _check_pieces(reply, books)


def _check_reply(asked: Asked, fate: Fate, replies: list[Reply], quoted: int) -> Iterator[str]:
    answers = [reply for reply in replies if reply.quoted]
    wanted_replies = {"answered": 1, "merged": 0, "cancelled": 0, "failed": len(replies), "command": 1}[fate]
    if len(replies) != wanted_replies:
        yield f"{asked.id} was {fate} and has {len(replies)} replies"
    if fate in ("answered", "merged") and quoted != 1:
        yield f"{asked.id} was {fate} and {quoted} answers quote it"
    if fate in ("cancelled", "failed") and quoted > 1:
        yield f"{asked.id} was {fate} and {quoted} answers quote it"
    if fate == "answered" and not any(asked.token in reply.quoted for reply in answers):
        yield f"{asked.id} was answered with something else"


def _check_failures(
    books: Books, fates: Mapping[str, Fate | None], to: Mapping[str | None, list[Reply]]
) -> Iterator[str]:
    """What failed is told once, at the last message of its turn."""
    by_chat: dict[str, list[Asked]] = defaultdict(list)
    for asked in books.asked.values():
        if fates.get(asked.id) == "failed":
            by_chat[asked.chat].append(asked)
    for failed in by_chat.values():
        is_told = False
        for asked in sorted(failed, key=lambda each: each.no, reverse=True):
            told = [reply for reply in to[asked.id] if reply.is_failure]
            if len(told) > 1 or len(to[asked.id]) > len(told):
                yield f"{asked.id} failed and has {len(to[asked.id])} replies"
            is_told = is_told or bool(told)
            if not is_told:
                yield f"{asked.id} failed without a word"


def _check_pieces(reply: Reply, books: Books) -> Iterator[str]:
    first = reply.pieces[0]
    numbers = [piece.piece for piece in reply.pieces]
    if numbers != list(range(len(numbers))):
        yield f"the pieces of {first.key} were shown in the order {numbers}"
    if reply.quoted and not reply.text.removesuffix(MAYBE_REPEATED_MARK).rstrip().endswith(
        ending(reply.quoted[-1])
    ):
        yield f"{first.id} in {first.chat} was cut off"
    asked = books.asked.get(reply.answers or "")
    if asked is not None and asked.kind != "stop" and not reply.quoted and not reply.is_failure:
        yield f"{first.id} is no answer to {asked.id}: {first.text[:80]!r}"


def check_crossing(evidence: Evidence) -> Iterator[str]:
    """No chat sees a word of another one."""
    books = evidence.books
    chats = {asked.token: asked.chat for asked in books.asked.values() if asked.token}
    for shown in books.shown:
        strange = canaries(shown.text) - {books.canaries.get(shown.chat)}
        strange |= {token for token in read_answer(shown.text) if chats.get(token) != shown.chat}
        asked = books.asked.get(shown.reply_to or "")
        if asked is not None and asked.chat != shown.chat:
            strange.add(asked.id)
        if strange:
            yield f"{shown.id} in {shown.chat} tells of {', '.join(sorted(strange))}"


def check_order(evidence: Evidence) -> Iterator[str]:
    """In each chat the replies came in the order of the questions; commands are answered when they come."""
    books = evidence.books
    last: dict[str, Asked] = {}
    for reply in replies_of(books):
        asked = books.asked.get(reply.answers or "")
        if asked is None or asked.kind == "stop" or reply.is_marked:
            continue
        before = last.get(reply.chat)
        if before is not None and asked.no < before.no:
            yield f"in {reply.chat} the reply to {asked.id} came after the one to {before.id}"
        last[reply.chat] = asked


def check_effects(evidence: Evidence) -> Iterator[str]:
    """A call that may run only once ran at most once, under its key and for its question."""
    once = [effect for effect in evidence.effects if effect.deed == "once"]
    for what, times in (Counter(each.key for each in once) | Counter(each.token for each in once)).items():
        if times > 1:
            yield f"the call of {what} ran {times} times, and may run once"


def check_stale(evidence: Evidence) -> Iterator[str]:
    """A gateway that wakes up after its leases shows nothing new."""
    for thaw in evidence.thaws:
        for shown in evidence.books.shown:
            if shown.node == thaw.node and thaw.at <= shown.at <= thaw.until:
                yield f"{thaw.node} was frozen beyond its lease, went on, and sent {shown.id}"


def check_rules(evidence: Evidence) -> Iterator[str]:
    """The store contradicts itself nowhere, calls are signed, and gateways leave in order."""
    yield from evidence.invariants
    yield from evidence.books.wrong
    yield from (
        f"{node} was asked to end and left with {code}" for node, code in evidence.ends.items() if code
    )


Check = Callable[[Evidence], Iterator[str]]

CHECKS: Final[dict[str, Check]] = {
    "every message taken has one fate": check_fates,
    "each was replied to once": check_replies,
    "nothing reached another chat": check_crossing,
    "replies came in order": check_order,
    "what may run once ran once": check_effects,
    "a stale gateway sent nothing": check_stale,
    "the store holds together": check_rules,
}
"""What is promised, and who looks."""
