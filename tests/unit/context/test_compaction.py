"""Plans: the result is smaller, calls keep their results, earlier summaries stay whole, the last turns are kept."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.context.rules.compaction import (
    KEPT_TURNS,
    SUMMARY_TOKENS_MAX,
    CompactionPlan,
    Item,
    TokenBudget,
    plan_by_hand,
    plan_compaction,
)
from keryx.core.context.rules.condensed_text import condense
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.token_count import count_item, count_text
from keryx.core.conversations.rules.message import Message, Role, encode_parts
from keryx.core.conversations.rules.part import (
    MediaPart,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)


def message(seq: int, role: Role, *parts: Part, author: str | None = None) -> Message:
    return Message(seq, "s", 0, seq, role, encode_parts(parts), author, None, None, 0, 0, 0, 0, 0, None, 0)


def cover(first_seq: int, last_seq: int, tokens: int = 50) -> Cover:
    return Cover(
        session_id="s",
        no=1,
        branch_no=0,
        first_seq=first_seq,
        last_seq=last_seq,
        summary="word " * (tokens * 4 // 5),
        tokens_before=10**6,
        tokens_after=tokens,
    )


def text(tokens: int) -> TextPart:
    return TextPart(text="abc " * tokens)


def step(seq: int, *, calls: int = 1, tokens: int = 10) -> list[Message]:
    """Return an assistant's message with calls, and their results in reverse order."""
    made = [ToolCallPart(call_id=f"{seq}-{n}", name="look", arguments={}) for n in range(calls)]
    results = [
        message(
            seq + 1 + n, "tool", ToolResultPart(call_id=call.call_id, name="look", output="abc " * tokens)
        )
        for n, call in enumerate(reversed(made))
    ]
    return [message(seq, "assistant", text(3), *made), *results]


def talk(*turns: tuple[int, int, int], begins: int = 1) -> list[Message]:
    """Return turns of (tokens of the question, steps, tokens of each result), each with an answer."""
    said: list[Message] = []

    def seq() -> int:
        return begins + len(said)

    for asked, steps, tokens in turns:
        said.append(message(seq(), "user", text(asked)))
        for _ in range(steps):
            said += step(seq(), calls=2, tokens=tokens)
        said.append(message(seq(), "assistant", text(20)))
    return said


def size(items: Sequence[Item]) -> int:
    return sum(map(count_item, items))


def kept_after(items: Sequence[Item], plan: CompactionPlan) -> list[Item]:
    at = items.index(plan.items[-1])
    return list(items[at + 1 :])


def test_four_turns_are_kept_if_they_fit_into_half_of_the_window() -> None:
    items = talk(*[(300, 0, 0)] * 12)
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=3_000))
    assert plan is not None
    assert kept_after(items, plan) == items[-2 * KEPT_TURNS :]
    assert (plan.first_seq, plan.last_seq, plan.message_count) == (1, 16, 16)


def test_more_turns_are_kept_if_they_fit_into_a_quarter_of_the_window() -> None:
    items = talk(*[(50, 0, 0)] * 60)
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=2_400))
    assert plan is not None
    kept = kept_after(items, plan)
    assert len(kept) > 2 * KEPT_TURNS
    assert size(kept) <= 1_000


def test_only_the_last_turn_is_kept_if_no_more_fits() -> None:
    items = talk((100, 0, 0), (2_000, 0, 0), (1_500, 0, 0))
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=2_000))
    assert plan is not None
    assert kept_after(items, plan) == items[-2:]


def test_a_turn_that_alone_is_too_long_is_covered_after_its_question() -> None:
    items = talk((100, 8, 300))[:-1]
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=2_000))
    assert plan is not None
    assert plan.first_seq == 2
    kept = kept_after(items, plan)
    assert kept[0].role == "assistant"  # type: ignore[union-attr]
    assert len(kept) < len(items) - 2
    one_result = talk((100, 1, 3_000))[:-1]
    plan = plan_compaction(one_result, TokenBudget(window=4_000, goal=2_000))
    assert plan is not None
    assert (plan.first_seq, kept_after(one_result, plan)) == (2, [])


def test_a_question_that_alone_is_too_long_is_covered_last() -> None:
    items: list[Item] = [cover(1, 9), message(10, "user", text(9_000))]
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=2_000))
    assert plan is not None
    assert (plan.first_seq, plan.last_seq) == (1, 10)


def test_a_question_is_not_covered_if_that_does_not_reach_the_goal() -> None:
    items: list[Item] = [cover(1, 9), message(10, "user", text(100))]
    assert plan_compaction(items, TokenBudget(window=4_000, goal=1_000, overhead=3_900)) is None


def test_a_short_range_is_not_covered_for_a_small_saving() -> None:
    items = talk((60, 0, 0), (60, 0, 0))
    assert plan_compaction(items, TokenBudget(window=4_000, goal=10)) is None
    assert plan_compaction([], TokenBudget(window=4_000, goal=10)) is None


def test_a_report_and_messages_that_came_together_are_one_turn() -> None:
    items = [
        *talk((900, 0, 0), (900, 0, 0)),
        message(5, "system", text(10)),
        message(6, "user", text(10)),
        message(7, "assistant", text(2_000)),
    ]
    plan = plan_compaction(items, TokenBudget(window=4_000, goal=2_300))
    assert plan is not None
    assert plan.last_seq == 4


def test_a_plan_by_hand_covers_all_except_the_last_turns() -> None:
    items: list[Item] = [cover(1, 9), *talk(*[(50, 0, 0)] * 10, begins=10)]
    (plan,) = plan_by_hand(items, window=100_000)
    assert (plan.first_seq, kept_after(items, plan)) == (1, items[-2 * KEPT_TURNS :])
    assert plan.message_count == 9 + 12
    assert plan_by_hand(items[-8:], window=100_000) == ()
    assert plan_by_hand([cover(1, 9)], window=100_000) == ()
    few = talk((10, 0, 0), *[(30_000, 0, 0)] * 2)
    assert plan_by_hand(few, window=100_000)


def test_a_summary_is_not_summarised_again_unless_it_is_long() -> None:
    last = talk((10, 0, 0), begins=10)
    assert plan_by_hand([cover(1, 9, tokens=300), *talk(*[(9, 0, 0)] * 4, begins=10)], window=10_000) == ()
    assert plan_compaction([cover(1, 9, tokens=300), *last], TokenBudget(window=10_000, goal=100)) is None
    assert (
        plan_compaction([cover(1, 9, tokens=3_000), *last], TokenBudget(window=10_000, goal=1_100))
        is not None
    )


def test_a_call_is_not_separated_from_its_result_by_messages_between() -> None:
    call, result = step(3, tokens=100)
    items = [
        *talk((900, 0, 0)),
        call,
        message(4, "user", text(10)),
        message(5, "assistant", text(100)),
        result._replace(id=6, seq=6),
        message(7, "assistant", text(100)),
        message(8, "user", text(10)),
    ]
    for percent in range(1, 100):
        plan = plan_compaction(items, TokenBudget(window=2_000, goal=20 * percent))
        assert plan is None or open_calls(plan.items) == open_calls(kept_after(items, plan)) == []


turns = st.lists(
    st.tuples(st.integers(1, 400), st.integers(0, 4), st.integers(1, 400)), min_size=1, max_size=12
)


@st.composite
def views(draw: st.DrawFn) -> list[Item]:
    """Draw turns, perhaps after a summary, perhaps with the last turn unanswered."""
    items: list[Item] = [*talk(*draw(turns), begins=10)]
    if draw(st.booleans()):
        items.insert(0, cover(1, 9, tokens=draw(st.integers(20, 900))))
    if draw(st.booleans()):
        items = items[:-1]
    if not draw(st.booleans()):
        return items
    # A message or a report may come anywhere, also between a call and its result.
    place = draw(st.integers(0, len(items)))
    between = message(0, draw(st.sampled_from(["user", "system"])), text(draw(st.integers(1, 300))))
    mixed = [*items[:place], between, *items[place:]]
    first = 10 if isinstance(items[0], Cover) and place else 1
    return [
        each if isinstance(each, Cover) else each._replace(seq=first + number, id=first + number)
        for number, each in enumerate(mixed)
        if not (isinstance(each, Cover) and place == 0)
    ]


@settings(max_examples=50)
@given(items=views(), window=st.integers(500, 8_000), percent=st.integers(1, 100))
def test_a_plan_makes_the_view_smaller_and_keeps_every_rule(
    items: list[Item], window: int, percent: int
) -> None:
    room = TokenBudget(window=window, goal=window * percent // 100)
    plan = plan_compaction(items, room)
    assert plan == plan_compaction(items, room), "the plan is deterministic"
    if plan is None:
        return
    start = items.index(plan.items[0])
    end = start + len(plan.items)
    assert list(plan.items) == items[start:end], "the plan is contiguous, with whole messages and summaries"
    assert 0 < plan.summary_tokens <= min(SUMMARY_TOKENS_MAX, plan.tokens // 2)
    assert size(items) - plan.tokens + plan.summary_tokens < size(items)
    assert open_calls(items[start:end]) == []
    assert open_calls([*items[:start], *items[end:]]) == []
    last = max(
        place
        for place in range(len(items))
        if asks(items[place]) and not (place and asks(items[place - 1])) and not open_calls(items[:place])
    )
    is_summarised = last == 1 and isinstance(items[0], Cover)
    if (
        size(items[last:]) + plan.summary_tokens <= room.goal
        and size(items[:last]) > 100
        and not is_summarised
    ):
        assert end <= last, "the turn in progress is kept"


# ---------------------------------------------------------------------------------------------- pinned messages


def test_plans_go_around_pinned_messages_and_the_longest_is_first() -> None:
    items = talk(*[(300, 0, 0)] * 12)
    room = TokenBudget(window=4_000, goal=2_500, pinned=frozenset({4}))
    plan = plan_compaction(items, room)
    assert plan is not None
    assert (plan.first_seq, plan.last_seq) == (5, 16)
    rest: list[Item] = [*items[:4], cover(5, 16), *items[16:]]
    plan = plan_compaction(rest, room)
    assert plan is not None
    assert (plan.first_seq, plan.last_seq) == (1, 3), "a plan does not reach over a pinned message"


def test_a_plan_by_hand_covers_the_ranges_around_pinned_messages() -> None:
    items = talk(*[(50, 0, 0)] * 10)
    plans = plan_by_hand(items, window=100_000, pinned=frozenset({4, 5, 10, 20}))
    assert [(plan.first_seq, plan.last_seq) for plan in plans] == [(1, 3), (6, 9), (11, 12)]
    assert sum(plan.summary_tokens for plan in plans) <= SUMMARY_TOKENS_MAX


def test_the_calls_and_results_of_a_pinned_message_are_not_covered_either() -> None:
    items = talk(*[(300, 1, 50)] * 8)
    for pinned in (2, 3, 4):
        plans = plan_by_hand(items, window=4_000, pinned=frozenset({pinned}))
        assert [(plan.first_seq, plan.last_seq) for plan in plans] == [(1, 1), (5, 20)]


def test_a_turn_that_is_too_long_is_covered_after_pinned_messages_at_its_beginning() -> None:
    items = talk((50, 8, 300))[:-1]
    plan = plan_compaction(items, TokenBudget(window=6_000, goal=3_000, pinned=frozenset({1, 2})))
    assert plan is not None
    assert plan.first_seq == 5, "the question and its first step are pinned"


def test_pinned_messages_are_kept_up_to_half_of_the_room() -> None:
    items = talk(*[(300, 0, 0)] * 12)
    room = TokenBudget(window=4_000, goal=2_000, overhead=400, pinned=frozenset(range(1, 16, 2)))
    plan = plan_compaction(items, room)
    assert plan is not None
    assert (plan.first_seq, plan.last_seq) == (1, 12), "the newest two, of 300 tokens each, are kept"
    assert plan_compaction(
        items, TokenBudget(window=4_000, goal=400, overhead=400, pinned=frozenset({3}))
    ) == plan_compaction(items, TokenBudget(window=4_000, goal=400, overhead=400))


@given(
    items=views(),
    window=st.integers(500, 8_000),
    percent=st.integers(1, 100),
    pinned=st.frozensets(st.integers(1, 60), max_size=12),
)
def test_pinned_messages_are_never_covered_while_they_fit(
    items: list[Item], window: int, percent: int, pinned: frozenset[int]
) -> None:
    room = TokenBudget(window=window, goal=window * percent // 100, pinned=pinned)
    # Twelve pinned messages leave up to thirteen ranges.
    steps, most = 0, 13 + len(items)
    while (plan := plan_compaction(items, room)) is not None and steps < most:
        steps += 1
        start = items.index(plan.items[0])
        end = start + len(plan.items)
        assert list(plan.items) == items[start:end]
        assert open_calls(items[start:end]) == open_calls([*items[:start], *items[end:]]) == []
        covered = [each for each in plan.items if isinstance(each, Message) and each.seq in pinned]
        kept = [group for group in inseparable(items) if any(each.seq in pinned for each in group)]
        fits = sum(map(size, kept)) <= room.goal // 2
        assert not (covered and fits), "no pinned message is covered while all of them fit"
        tokens = min(plan.summary_tokens, 40)
        smaller = [*items[:start], cover(plan.first_seq, plan.last_seq, tokens), *items[end:]]
        assert size(smaller) < size(items)
        items = smaller
    assert steps < most, "the loop ends"


def inseparable(items: Sequence[Item]) -> list[list[Message]]:
    """Return the groups of messages that no cut may split: those from a call to its result."""
    groups: list[list[Message]] = []
    waiting: set[str] = set()
    for item in items:
        if isinstance(item, Cover):
            continue
        groups = groups if waiting else [*groups, []]
        groups[-1].append(item)
        waiting |= {part.call_id for part in item.parts if isinstance(part, ToolCallPart)}
        waiting -= {part.call_id for part in item.parts if isinstance(part, ToolResultPart)}
    return groups


def asks(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("user", "system")


def open_calls(items: Sequence[Item]) -> list[str]:
    """Return the ids of calls without results, and of results without calls."""
    parts = [part for item in items if isinstance(item, Message) for part in item.parts]
    calls = {part.call_id for part in parts if isinstance(part, ToolCallPart)}
    return sorted(calls ^ {part.call_id for part in parts if isinstance(part, ToolResultPart)})


# ------------------------------------------------------------------------------------------------ digests


def test_a_digest_contains_the_beginning_and_the_end_and_counts_the_rest() -> None:
    items = [message(seq, "user", TextPart(text=f"word{seq} " * 30)) for seq in range(1, 200)]
    told = condense(items, tokens=500, line_length=100)
    assert told.startswith("[1] user: word1 ")
    assert told.splitlines()[-1].startswith("[199] user: word199")
    (gap,) = [line for line in told.splitlines() if "left out here" in line]
    assert int(gap.split()[1]) == 199 - (len(told.splitlines()) - 1)
    assert count_text(told) <= 500
    assert max(map(len, told.splitlines())) <= 100


def test_a_digest_of_short_items_contains_all_of_them() -> None:
    items: list[Item] = [
        cover(1, 9, tokens=10),
        message(
            10,
            "user",
            TextPart(text="Look."),
            MediaPart(media_type="image/png", blob="a" * 64),
            author="A\nna",
        ),
        *step(11, calls=1, tokens=1),
        message(13, "tool", ToolResultPart(call_id="x", name="look", output={"no": 1}, is_error=True)),
        message(14, "assistant", ThinkingPart(text="hm"), TextPart(text="Seen.")),
    ]
    assert condense(items, tokens=1_000, line_length=200) == (
        "[1 to 9] in short: " + "word " * 8 + "\n"
        '[10] user "A\\nna": Look. [image/png]\n'
        "[11] assistant: abc abc abc  (calls look with {})\n"
        "[12] tool: (look gave: abc )\n"
        '[13] tool: (look failed: {"no":1})\n'
        "[14] assistant: Seen."
    )


@pytest.mark.parametrize("tokens", [0, 10, 20])
def test_a_digest_that_is_too_small_for_an_item_still_contains_the_count(tokens: int) -> None:
    items = [message(seq, "user", TextPart(text="漢字" * 500)) for seq in range(1, 4)]
    assert "3 messages in between" in condense(items, tokens=tokens, line_length=100)


@given(items=views(), tokens=st.integers(30, 2_000), line_length=st.integers(30, 400))
def test_a_digest_is_never_much_longer_than_its_bound(
    items: list[Item], tokens: int, line_length: int
) -> None:
    told = condense(items, tokens=tokens, line_length=line_length)
    assert told
    assert count_text(told) <= tokens + len(told.splitlines())
    assert told == condense(items, tokens=tokens, line_length=line_length)
