"""Which part of a conversation a summary should stand for, so that the rest has room. Pure, and the same every time.

A plan is one contiguous range. It never parts a call from its result, takes earlier summaries whole, and leaves the
last turns as they are: at least four where they fit into half of the window, at least the one that is being answered.
Only where that turn alone is too long does a plan reach into it. What is pinned lies in no plan, and neither do its
calls and results, as long as all that is pinned takes at most half of the room: the newest first.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from keryx.domain.cover import Cover
from keryx.domain.message import Message
from keryx.domain.part import ToolCallPart, ToolResultPart
from keryx.domain.token_count import count_said
from keryx.values import dataclass

Item: TypeAlias = Message | Cover
"""What a model reads of the past."""

WINDOW_TOKENS: Final = 128_000
"""What a model is taken to read where neither the owner nor the packages say."""
KEPT_TURNS: Final = 4
KEPT_SHARE: Final = 4
"""A quarter of the window is kept as it is; four turns may take two quarters."""
SUMMARY_SHARE: Final = 10
SUMMARY_TOKENS_MIN: Final = 100
SUMMARY_TOKENS_MAX: Final = 2_500
WORTH_TOKENS: Final = 64
"""What is shorter than this is not worth a summary."""
WORTH_SHARE: Final = 20
"""Nor is a summary that is not enough, and saves less than a twentieth of the window."""
PINNED_SHARE: Final = 2
"""Half of what the conversation should come to may be pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much may be read: the window, what stands in it besides the conversation, and what all should come to."""

    window: int
    goal: int
    overhead: int = 0
    pinned: frozenset[int] = frozenset()
    """The numbers of messages that stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a summary is to stand for: ``items``, of about so many tokens, in at most ``summary_tokens``."""

    items: tuple[Item, ...]
    tokens: int
    summary_tokens: int

    @property
    def first_seq(self) -> int:
        """Where it begins."""
        return _first(self.items[0])

    @property
    def last_seq(self) -> int:
        """Where it ends."""
        return _last(self.items[-1])

    @property
    def message_count(self) -> int:
        """How many messages it stands for, those of earlier summaries among them."""
        return sum(_last(item) - _first(item) + 1 for item in self.items)


def plan_room(items: Sequence[Item], room: Room) -> Plan | None:
    """Return what to cover so that all comes to the goal, or as near as one summary can; None if nothing is left to.

    ``items`` end with what is to be answered, which is covered too only where that alone brings all to the goal. Around
    what is pinned several summaries may be needed: this is the one of them that saves the most.
    """
    most_pinned = max(0, room.goal - room.overhead) // PINNED_SHARE
    view = _View(items, room.window, _held(items, room.pinned, most_tokens=most_pinned))
    total = room.overhead + view.size(0, len(items))
    for ranges in (view.before(), view.within()):
        most: Plan | None = None
        for start, end in ranges:
            plans = view.plans(start, end)
            longest = max(plans, key=_saved, default=None)
            if longest is not None and total - sum(map(_saved, plans)) <= room.goal:
                return longest
            most = max(filter(None, (most, longest)), key=_saved, default=None)
        if most is not None and _saved(most) >= room.window // WORTH_SHARE:
            return most
    everything = view.plans(0, len(items))
    is_enough = total - sum(map(_saved, everything)) <= room.goal
    return max(everything, key=_saved, default=None) if is_enough else None


def plan_by_hand(
    items: Sequence[Item], *, window: int, pinned: frozenset[int] = frozenset()
) -> tuple[Plan, ...]:
    """Return what to cover where a person asks for it: all but the last turns and what is pinned, in order."""
    view = _View(items, window, _held(items, pinned, most_tokens=window // KEPT_SHARE))
    return tuple(view.plans(0, view.kept_from(at_most_turns=True)))


def _saved(plan: Plan) -> int:
    return plan.tokens - plan.summary_tokens


class _View:
    """What a model reads, with the sizes and the places at which it may be cut."""

    def __init__(self, items: Sequence[Item], window: int, held: Sequence[tuple[int, int]]) -> None:
        self._items = items
        self._window = window
        self._held = held
        self._sums = [0, *accumulate(map(count_said, items))]
        self._cuts = _whole_cuts(items)
        asks = [isinstance(item, Message) and item.role in ("user", "system") for item in items]
        self._turns = [
            place
            for place in range(len(items))
            if asks[place] and not (place and asks[place - 1]) and self._cuts[place]
        ]
        self._asks = asks

    def size(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start]

    def plans(self, start: int, end: int) -> list[Plan]:
        """Return the plans to cover a range, around what is pinned in it."""
        return [plan for run in self._runs(start, end) if (plan := self._plan(*run)) is not None]

    def _runs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for held_start, held_end in self._held:
            if held_start < end and start < held_end:
                yield start, max(start, held_start)
                start = held_end
        yield start, max(start, end)

    def _plan(self, start: int, end: int) -> Plan | None:
        """Return the plan to cover a range, unless it is too short for that, or just summarised."""
        tokens = self.size(start, end)
        budget = min(max(self._window // SUMMARY_SHARE, SUMMARY_TOKENS_MIN), SUMMARY_TOKENS_MAX)
        # Summaries between pinned messages share what one alone might take, or they would fill the window themselves.
        budget = max(budget // (1 + len(self._held)), SUMMARY_TOKENS_MIN)
        items = tuple(self._items[start:end])
        is_summary = len(items) == 1 and isinstance(items[0], Cover) and tokens <= budget
        if tokens < WORTH_TOKENS or is_summary:
            return None
        return Plan(items=items, tokens=tokens, summary_tokens=min(budget, tokens // 2))

    def kept_from(self, *, at_most_turns: bool = False) -> int:
        """Return where the last turns begin that stay as they are."""
        keep, end = self._window // KEPT_SHARE, len(self._items)
        if not self._turns:
            return 0
        fitting = [place for place in self._turns if self.size(place, end) <= keep]
        kept = fitting[0] if fitting else self._turns[-1]
        few = self._turns[max(0, len(self._turns) - KEPT_TURNS)]
        if self.size(few, end) > 2 * keep:
            return kept
        return few if at_most_turns else min(kept, few)

    def before(self) -> list[tuple[int, int]]:
        """Return ranges of what was said before the question, the shorter one first."""
        return [(0, self.kept_from()), (0, self._turns[-1] if self._turns else 0)]

    def within(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of what was done for the question, which itself stays: up to a step, then all of it."""
        end = len(self._items)
        last = self._turns[-1] if self._turns else 0
        begin = next((place for place in range(last, end) if not self._asks[place]), end)
        begin = next(place for place in range(begin, end + 1) if self._cuts[place])
        steps = [place for place in range(begin + 1, end) if self._cuts[place] and self._speaks(place)]
        fitting = [place for place in steps if self.size(place, end) <= self._window // KEPT_SHARE]
        for place in (*fitting[:1], *steps[-1:]):
            yield begin, place
        yield begin, end

    def _speaks(self, place: int) -> bool:
        item = self._items[place]
        return isinstance(item, Message) and item.role == "assistant"


def _held(items: Sequence[Item], pinned: frozenset[int], *, most_tokens: int) -> list[tuple[int, int]]:
    """Return the places of what is pinned, with the calls and results that belong to it, as far as there is room."""
    if not pinned:
        return []
    held: list[tuple[int, int]] = []
    cuts = [place for place, is_whole in enumerate(_whole_cuts(items)) if is_whole]
    for start, end in reversed(list(pairwise(cuts))):
        together = items[start:end]
        if any(isinstance(item, Message) and item.seq in pinned for item in together):
            tokens = sum(map(count_said, together))
            if tokens <= most_tokens:
                most_tokens -= tokens
                is_next_to_it = bool(held) and held[-1][0] == end
                held.append((start, held.pop()[1] if is_next_to_it else end))
    held.reverse()
    return held


def _whole_cuts(items: Sequence[Item]) -> list[bool]:
    """Say for each place, the end included, whether a cut before it leaves every call beside its result."""
    made: dict[str, int] = {}
    parted = [0] * (len(items) + 2)
    for place, item in enumerate(items):
        if isinstance(item, Cover) or item.body.startswith('"'):
            continue
        for part in item.parts:
            if isinstance(part, ToolCallPart):
                made[part.call_id] = place
            elif isinstance(part, ToolResultPart) and part.call_id in made:
                parted[made.pop(part.call_id) + 1] += 1
                parted[place + 1] -= 1
    return [not open_pairs for open_pairs in accumulate(parted[:-1])]


def _first(item: Item) -> int:
    return item.first_seq if isinstance(item, Cover) else item.seq


def _last(item: Item) -> int:
    return item.last_seq if isinstance(item, Cover) else item.seq
