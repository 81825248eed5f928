"""The platform's books held against the store's: what was promised, judged by what people can see."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from keryx.domain.outbox import MAYBE_REPEATED_MARK
from keryx.gateway.dispatch import GROWING
from keryx.testing.platform import FakePlatform, Shown
from keryx.testing.simulator.script import ANSWER, TOOLS, Effects, numbers_in
from keryx.values import dataclass
from keryx.views.fates import ItemFate

FAILED_WORDS = "/retry"
"""What every notice about a message that failed names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Something a person said: its number, where, and the reference under which the platform delivered it."""

    number: int
    chat: str
    ref: str
    audience: frozenset[str] = frozenset()
    """Other chats of those who heard it, in which a search may show it."""


def check_books(
    platform: FakePlatform, sayings: Sequence[Saying], items: Sequence[ItemFate], effects: Effects
) -> list[str]:
    """Return every promise that was broken; only after everything has ended."""
    return [
        *_accounted(platform, sayings, items),
        *_answered_once(platform, sayings, items),
        *_not_crossed(platform.shown, sayings),
        *_in_order(platform.shown, sayings, items),
        *_effects_kept(effects),
    ]


def _accounted(platform: FakePlatform, sayings: Iterable[Saying], items: Sequence[ItemFate]) -> Iterator[str]:
    """Everything acknowledged is there once, with a fate; what failed did so visibly."""
    counted = Counter(item.ref for item in items)
    fates = {item.ref: item.fate for item in items}
    for saying in sayings:
        if saying.ref in platform.acknowledged and counted[saying.ref] != 1:
            yield f"#{saying.number} was acknowledged and is there {counted[saying.ref]} times"
        elif saying.ref in counted and fates[saying.ref] is None:
            yield f"#{saying.number} has no fate"
        elif fates.get(saying.ref) == "failed" and not any(
            FAILED_WORDS in text for text in platform.said_to(saying.chat)
        ):
            yield f"#{saying.number} failed and nobody was told"


def _answered_once(
    platform: FakePlatform, sayings: Iterable[Saying], items: Sequence[ItemFate]
) -> Iterator[str]:
    """What is called answered is answered in one message; another one is marked."""
    fates = {item.ref: item.fate for item in items}
    answers = _answers(platform.shown)
    marked = {each.key for each in platform.shown if MAYBE_REPEATED_MARK in each.text}
    for saying in sayings:
        # What grew and was not known to be there became a marked message later, with whatever it said in the end.
        shown = [each for each in answers[saying.number] if not (_is_growing(each) and each.key in marked)]
        if fates.get(saying.ref) == "answered" and all(_is_growing(each) for each in shown):
            yield f"#{saying.number} was answered and nobody sees it"
        unmarked = [each for each in shown if MAYBE_REPEATED_MARK not in each.text]
        if len(unmarked) > 1:
            yield f"#{saying.number} is answered {len(unmarked)} times: {[each.texts for each in unmarked]}"


def _not_crossed(shown: Iterable[Shown], sayings: Iterable[Saying]) -> Iterator[str]:
    """An answer is read only where it was asked for, and nothing by anybody who had not heard it."""
    said = {saying.number: saying for saying in sayings}
    for each in shown:
        for text in each.texts:
            for number in numbers_in(text):
                home, audience = said[number].chat, said[number].audience
                is_answer = text.startswith(ANSWER)
                if each.to.chat_id != home and (is_answer or each.to.chat_id not in audience):
                    yield f"#{number} of chat {home} was shown in chat {each.to.chat_id}"


def _in_order(shown: Sequence[Shown], sayings: Iterable[Saying], items: Sequence[ItemFate]) -> Iterator[str]:
    """Within a session, answers come in the order of the last message that each of them answers.

    One that was repeated is left out: its first copy may have been on the way for as long as its sender was frozen.
    """
    repeated = {
        number for each in shown if MAYBE_REPEATED_MARK in each.text for number in numbers_in(each.text)
    }
    places = {item.ref: (item.session_id, place) for place, item in enumerate(items)}
    accepted = {each.number: places[each.ref] for each in sayings if each.ref in places}
    last: dict[str, int] = defaultdict(int)
    for each in shown:
        if not each.text.startswith(ANSWER) or _is_growing(each) or repeated & set(numbers_in(each.text)):
            continue
        known = [accepted[number] for number in numbers_in(each.text) if number in accepted]
        session_id, place = max(known, key=lambda at: at[1], default=("", 0))
        if place < last[session_id]:
            yield f"{each.text.splitlines()[0]!r} came after the answer to something later"
        last[session_id] = max(last[session_id], place)


def _effects_kept(effects: Effects) -> Iterator[str]:
    for (name, number), count in effects.started.items():
        if TOOLS[name] == "once" and count > 1:
            yield f"{name} was started {count} times for #{number}"
        keys = effects.keys[name, number]
        if TOOLS[name] == "idempotent" and len(keys) > 1:
            yield f"{name} ran under {len(keys)} keys for #{number}"


def _answers(shown: Iterable[Shown]) -> dict[int, list[Shown]]:
    answers: dict[int, list[Shown]] = defaultdict(list)
    for each in shown:
        if each.text.startswith(ANSWER):
            for number in numbers_in(each.text):
                answers[number].append(each)
    return answers


def _is_growing(shown: Shown) -> bool:
    return shown.text.endswith(GROWING)
