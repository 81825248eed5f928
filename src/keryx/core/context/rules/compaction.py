"""Choose the part of a conversation that a summary should replace, so that the rest fits. Pure and deterministic.

A plan is one contiguous range. It never separates a call from its result, covers earlier summaries in full, and
keeps the last turns: at least four if they fit into half of the window, and at least the turn in progress. A plan
reaches into that turn only if the turn alone is too long. No plan covers pinned messages or their calls and results,
as long as they take at most half of the room; the newest pinned messages come first.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.token_count import count_item
from keryx.core.conversations.rules.message import Message
from keryx.core.conversations.rules.part import ToolCallPart, ToolResultPart
from keryx.values import dataclass

Item: TypeAlias = Message | Cover
"""An item of the conversation as a model reads it."""

WINDOW_TOKENS: Final = 128_000
"""The assumed context window if neither the owner nor the packages give one."""
KEPT_TURNS: Final = 4
KEPT_SHARE: Final = 4
"""A quarter of the window is kept unchanged; four turns may take two quarters."""
SUMMARY_SHARE: Final = 10
SUMMARY_TOKENS_MIN: Final = 100
SUMMARY_TOKENS_MAX: Final = 2_500
WORTH_TOKENS: Final = 64
"""A shorter range is not worth a summary."""
WORTH_SHARE: Final = 20
"""If a summary does not reach the goal and saves less than a twentieth of the window, it is not worth making."""
PINNED_SHARE: Final = 2
"""Pinned messages may take half of the conversation's goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The available tokens: the window, the overhead besides the conversation, and the goal for the total."""

    window: int
    goal: int
    overhead: int = 0
    pinned: frozenset[int] = frozenset()
    """The numbers of the pinned messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """A range for a summary: ``items``, of about ``tokens``, to be replaced by at most ``summary_tokens``."""

    items: tuple[Item, ...]
    tokens: int
    summary_tokens: int

    @property
    def first_seq(self) -> int:
        """The first message of the range."""
        return _first(self.items[0])

    @property
    def last_seq(self) -> int:
        """The last message of the range."""
        return _last(self.items[-1])

    @property
    def message_count(self) -> int:
        """The number of messages in the range, including those of earlier summaries."""
        return sum(_last(item) - _first(item) + 1 for item in self.items)


def plan_compaction(items: Sequence[Item], room: TokenBudget) -> CompactionPlan | None:
    """Return the range to cover so that the total reaches the goal, or gets as near as one summary can; else None.

    ``items`` end with the question, which is covered only if nothing else reaches the goal. Around pinned messages
    several summaries may be needed: this is the one that saves most.
    """
    most_pinned = max(0, room.goal - room.overhead) // PINNED_SHARE
    view = _View(items, room.window, _pinned_ranges(items, room.pinned, most_tokens=most_pinned))
    total = room.overhead + view.size(0, len(items))
    for ranges in (view.before(), view.within()):
        best: CompactionPlan | None = None
        for start, end in ranges:
            plans = view.plans(start, end)
            longest = max(plans, key=_saved, default=None)
            if longest is not None and total - sum(map(_saved, plans)) <= room.goal:
                return longest
            best = max(filter(None, (best, longest)), key=_saved, default=None)
        if best is not None and _saved(best) >= room.window // WORTH_SHARE:
            return best
    everything = view.plans(0, len(items))
    is_enough = total - sum(map(_saved, everything)) <= room.goal
    return max(everything, key=_saved, default=None) if is_enough else None


def plan_by_hand(
    items: Sequence[Item], *, window: int, pinned: frozenset[int] = frozenset()
) -> tuple[CompactionPlan, ...]:
    """Return the ranges to cover if a person asks for it: all except the last turns and pinned messages, in order."""
    view = _View(items, window, _pinned_ranges(items, pinned, most_tokens=window // KEPT_SHARE))
    return tuple(view.plans(0, view.kept_from(at_most_turns=True)))


def _saved(plan: CompactionPlan) -> int:
    return plan.tokens - plan.summary_tokens


class _View:
    """The items that a model reads, with their sizes and the places where a range may end."""

    def __init__(self, items: Sequence[Item], window: int, ranges: Sequence[tuple[int, int]]) -> None:
        self._items = items
        self._window = window
        self._pinned_ranges = ranges
        self._sums = [0, *accumulate(map(count_item, items))]
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

    def plans(self, start: int, end: int) -> list[CompactionPlan]:
        """Return the plans that cover a range, except its pinned messages."""
        return [plan for run in self._runs(start, end) if (plan := self._plan(*run)) is not None]

    def _runs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for pinned_start, pinned_end in self._pinned_ranges:
            if pinned_start < end and start < pinned_end:
                yield start, max(start, pinned_start)
                start = pinned_end
        yield start, max(start, end)

    def _plan(self, start: int, end: int) -> CompactionPlan | None:
        """Return the plan that covers a range, or None if the range is too short, or is one short summary already."""
        tokens = self.size(start, end)
        budget = min(max(self._window // SUMMARY_SHARE, SUMMARY_TOKENS_MIN), SUMMARY_TOKENS_MAX)
        # Summaries between pinned messages share the budget of one summary, or they would fill the window themselves.
        budget = max(budget // (1 + len(self._pinned_ranges)), SUMMARY_TOKENS_MIN)
        items = tuple(self._items[start:end])
        is_summary = len(items) == 1 and isinstance(items[0], Cover) and tokens <= budget
        if tokens < WORTH_TOKENS or is_summary:
            return None
        return CompactionPlan(items=items, tokens=tokens, summary_tokens=min(budget, tokens // 2))

    def kept_from(self, *, at_most_turns: bool = False) -> int:
        """Return the place where the kept last turns begin."""
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
        """Return the ranges before the question, the shorter one first."""
        return [(0, self.kept_from()), (0, self._turns[-1] if self._turns else 0)]

    def within(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges after the question, which itself stays: first up to a step, then up to the end."""
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


def _pinned_ranges(
    items: Sequence[Item], pinned: frozenset[int], *, most_tokens: int
) -> list[tuple[int, int]]:
    """Return the ranges of pinned messages, with their calls and results, as far as they fit."""
    if not pinned:
        return []
    ranges: list[tuple[int, int]] = []
    cuts = [place for place, is_whole in enumerate(_whole_cuts(items)) if is_whole]
    for start, end in reversed(list(pairwise(cuts))):
        together = items[start:end]
        if any(isinstance(item, Message) and item.seq in pinned for item in together):
            tokens = sum(map(count_item, together))
            if tokens <= most_tokens:
                most_tokens -= tokens
                is_adjacent = bool(ranges) and ranges[-1][0] == end
                ranges.append((start, ranges.pop()[1] if is_adjacent else end))
    ranges.reverse()
    return ranges


def _whole_cuts(items: Sequence[Item]) -> list[bool]:
    """Return for each place, including the end, whether a cut before it keeps every call with its result."""
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
