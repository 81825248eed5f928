"""Check the promises of Keryx: compare the records of the platform, which users see, with those of the store."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from keryx.core.deliveries.rules.delivery import MAYBE_REPEATED_MARK
from keryx.core.deliveries.views.message_fates import DeliveryFate, EndedTurn, ItemFate
from keryx.gateway.deliveries import PREVIEW_SUFFIX
from keryx.testing.platform import FakePlatform, Shown
from keryx.testing.simulator.script import ANSWER, EFFECTS, QUESTION, Effects, numbers_in
from keryx.values import dataclass

_QUESTION_NO = re.compile(r"This is question (\d+)")
FAILED_WORDS = "/retry"
"""The text in every notice about a failed message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message that a person sent: its number, its chat, and the ref of its update."""

    number: int
    chat: str
    ref: str
    audience: frozenset[str] = frozenset()
    """Other chats whose readers all know the message; a search may show it there."""
    beside: frozenset[str] = frozenset()
    """The chats in ``audience`` with exactly the same readers; they may share the conversation."""


@dataclass(frozen=True, kw_only=True)
class SimulationRecords:
    """All records after the end of a world."""

    platform: FakePlatform
    sent: Sequence[SentMessage]
    items: Sequence[ItemFate]
    deliveries: Sequence[DeliveryFate]
    ends: Mapping[int, EndedTurn]
    effects: Effects
    retried: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)

    @cached_property
    def merged(self) -> set[str]:
        """The refs of messages that were answered together with a later one."""
        return {item.ref for item in self.items if item.fate == "merged"}

    @cached_property
    def shown(self) -> dict[str, list[Shown]]:
        """The messages that users see, by the key of their delivery."""
        shown: dict[str, list[Shown]] = defaultdict(list)
        for each in self.platform.shown:
            shown[_delivery_key(each.key)].append(each)
        return shown

    @cached_property
    def turned_away(self) -> set[str]:
        """The keys of deliveries with a piece that went to a dead chat."""
        return {_delivery_key(each.key) for each in self.platform.turned_away}

    @cached_property
    def by_key(self) -> dict[str, DeliveryFate]:
        """The deliveries by key."""
        return {each.idempotency_key: each for each in self.deliveries}

    def was_turned_away(self, chat: str, word: str) -> bool:
        """Return whether a dead chat refused a message with this word."""
        return any(
            each.to.chat_id == chat and word in getattr(each.piece, "text", "")
            for each in self.platform.turned_away
        )

    def answers_max(self, message: SentMessage) -> int:
        """Return how many turns may answer a message: one, plus one for each request for another answer.

        An undo removes the last message with its answer. Messages that were answered together with it stay, and the
        next turn answers them again.
        """
        again = self.retried + self.undone if message.ref in self.merged else self.retried
        return 1 + sum(again[chat] for chat in (message.chat, *message.beside))


def check_records(records: SimulationRecords) -> list[str]:
    """Return all breaches of promises; call this only after all work has ended."""
    return [
        *_check_fates(records),
        *_check_deliveries(records),
        *_check_answers(records),
        *_check_surfaces(records),
        *_check_crossing(records),
        *_check_order(records),
        *_check_effects(records),
    ]


def _check_fates(records: SimulationRecords) -> Iterator[str]:
    """Every acknowledged message is stored once, with a fate; every failure is visible."""
    platform = records.platform
    counted = Counter(item.ref for item in records.items)
    fates = {item.ref: item.fate for item in records.items}
    for message in records.sent:
        if message.ref in platform.acknowledged and counted[message.ref] != 1:
            yield f"#{message.number} was acknowledged and is stored {counted[message.ref]} times"
        elif message.ref in counted and fates[message.ref] is None:
            yield f"#{message.number} has no fate"
        elif (
            fates.get(message.ref) == "failed"
            and not any(FAILED_WORDS in text for text in platform.said_to(message.chat))
            and not records.was_turned_away(message.chat, FAILED_WORDS)
        ):
            yield f"#{message.number} failed without a notice"


def _check_deliveries(records: SimulationRecords) -> Iterator[str]:
    """Every delivery is shown in its chat, each piece once, unless the chat was dead."""
    for key, delivery in records.by_key.items():
        whole = [each for each in records.shown[key] if not _is_preview(each)]
        if delivery.state == "dead" and key in records.turned_away:
            continue
        if delivery.state != "sent":
            yield f"delivery {delivery.id} to {delivery.chat_id} ended as {delivery.state}"
        elif not any(each.key.endswith("-0") for each in whole):
            yield f"delivery {delivery.id} counts as sent, but is not shown in {delivery.chat_id}"
    for key, shown in records.shown.items():
        if key not in records.by_key or any(each.to.chat_id != records.by_key[key].chat_id for each in shown):
            yield f"{shown[0].text!r} is shown in a chat without a delivery for it"
        unmarked = Counter(each.key for each in shown if not _is_marked(each) and not _is_preview(each))
        yield from (f"piece {piece} is shown {count} times" for piece, count in unmarked.items() if count > 1)
        # A preview with an unknown outcome is followed by a marked message with the final text.
        may_grow = key in records.turned_away or any(_is_marked(each) for each in shown)
        if not may_grow and any(_is_preview(each) for each in shown):
            yield f"the preview {shown[0].text!r} was never finished"


def _check_answers(records: SimulationRecords) -> Iterator[str]:
    """An answered message has a visible answer in its chat, and no more turns than requested answer it."""
    fates = {item.ref: item.fate for item in records.items}
    turns: dict[int, set[int | None]] = defaultdict(set)
    seen: set[tuple[int, str]] = set()
    for each in records.platform.shown:
        delivery = records.by_key.get(_delivery_key(each.key))
        if delivery is not None and each.text.startswith(ANSWER) and not _is_preview(each):
            if not numbers_in(each.text):
                yield f"turn {delivery.turn_id} answers nothing"
            for number in numbers_in(each.text):
                turns[number].add(delivery.turn_id)
                seen.add((number, each.to.chat_id))
    for message in records.sent:
        number = message.number
        chats = (message.chat, *message.beside)
        if (
            fates.get(message.ref) == "answered"
            and not any((number, chat) in seen for chat in chats)
            and not any(records.was_turned_away(chat, f"#{number}") for chat in chats)
        ):
            yield f"#{number} was answered, but no answer is shown"
        if len(turns[number]) > records.answers_max(message):
            yield f"#{number} is answered by {len(turns[number])} turns"


def _check_surfaces(records: SimulationRecords) -> Iterator[str]:
    """A turn's output is sent once to the chat that asked, and once to each surface that shows the session."""
    said: dict[int, Counter[str]] = defaultdict(Counter)
    for delivery in records.deliveries:
        if delivery.turn_id is not None and delivery.kind in ("reply", "copy"):
            said[delivery.turn_id][delivery.chat_id] += 1
    for end in records.ends.values():
        if end.purpose != "reply" or end.origin is None or end.state not in ("finished", "failed"):
            continue
        wanted = dict.fromkeys([end.origin.chat_id, *(each.chat_id for each in end.surfaces)], 1)
        # A failed turn that is retried has no output yet.
        if said[end.id] != wanted and (end.state == "finished" or said[end.id]):
            yield f"turn {end.id} belongs in {sorted(wanted)} and was sent to {sorted(said[end.id].elements())}"


def _check_crossing(records: SimulationRecords) -> Iterator[str]:
    """Answers and questions are shown only where the session may be shown, and no text to people who do not know it."""
    said = {message.number: message for message in records.sent}
    for each in records.platform.shown:
        for text in each.texts:
            is_own = text.startswith((ANSWER, QUESTION))
            for number in numbers_in(text):
                message = said[number]
                heard = message.beside if is_own else message.audience | message.beside
                if each.to.chat_id not in (message.chat, *heard):
                    yield f"#{number} of chat {message.chat} was shown in chat {each.to.chat_id}"


def _check_order(records: SimulationRecords) -> Iterator[str]:
    """In each chat of a session, answers come in the order of the last message that each of them answers.

    Repeated answers are left out: the first copy may have been under way while its sender was frozen. A message that
    is answered again is already in the transcript that the model sees, and does not overtake waiting messages.
    """
    repeated = {_delivery_key(each.key) for each in records.platform.shown if _is_marked(each)}
    positions: dict[int, int] = {}
    for item in records.items:
        if item.turn_id is not None and item.kind == "message":
            positions[item.turn_id] = item.id
    last: dict[tuple[str, str], int] = defaultdict(int)
    for each in records.platform.shown:
        key = _delivery_key(each.key)
        delivery = records.by_key.get(key)
        end = None if delivery is None or delivery.turn_id is None else records.ends.get(delivery.turn_id)
        if end is None or end.state != "finished" or key in repeated or not each.text.startswith(ANSWER):
            continue
        if end.id not in positions:
            continue
        position, where = positions[end.id], (end.session_id, each.to.chat_id)
        if position < last[where]:
            yield f"{each.text.splitlines()[0]!r} came after the answer to a later message"
        last[where] = max(last[where], position)


def _check_effects(records: SimulationRecords) -> Iterator[str]:
    said = {message.number: message for message in records.sent}
    for (name, number), count in records.effects.started.items():
        keys, most = records.effects.keys[name, number], records.answers_max(said[number])
        if EFFECTS[name] in ("once", "ask") and count > len(keys):
            yield f"{name} was started {count} times under {len(keys)} keys for #{number}"
        if EFFECTS[name] in ("once", "ask", "idempotent") and len(keys) > most:
            yield f"{name} was called {len(keys)} times for #{number}"
    for number in records.effects.not_allowed:
        yield f"the call for #{number} ran without approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuestion:
    """A visible question: its number, the message it is about, and its chat."""

    no: int
    about: int
    chat: str


def list_questions(platform: FakePlatform) -> list[ShownQuestion]:
    """Return the completely visible questions, in their order."""
    texts: dict[tuple[str, str], str] = defaultdict(str)
    for each in platform.shown:
        texts[_delivery_key(each.key), each.to.chat_id] += f"{each.text}\n"
    return [
        ShownQuestion(no=int(found[1]), about=numbers_in(text)[0], chat=chat)
        for (_, chat), text in texts.items()
        if text.startswith(QUESTION) and (found := _QUESTION_NO.search(text))
    ]


def _delivery_key(key: str) -> str:
    """Return the key of a piece's delivery."""
    return key.rpartition("-")[0]


def _is_marked(shown: Shown) -> bool:
    return MAYBE_REPEATED_MARK in shown.text


def _is_preview(shown: Shown) -> bool:
    return shown.text.endswith(PREVIEW_SUFFIX)
