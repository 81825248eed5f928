"""Keep the prompts of a turn within a model's context window: a summary stands for the messages before.

The model writes the summary. If it fails, writes nothing or writes too much, the summary is made of the beginnings and
ends of the messages, so that a conversation can always continue. Each summary is stored whole, and then the prompt is
read again from the store: after a crash the summary is stored, or nothing of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from keryx.agents.agent import HistoryItem, Stage
from keryx.agents.model.contract import ModelPrompt
from keryx.agents.model.prompt_size import TRUSTED, PromptSize, measure_prompt
from keryx.agents.model.summary_prompt import split_notes, summary_prompt
from keryx.core.context.rules.compaction import (
    KEPT_TURNS,
    CompactionPlan,
    TokenBudget,
    plan_by_hand,
    plan_compaction,
)
from keryx.core.context.rules.condensed_text import condense
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.cover import Summary, SummaryCost
from keryx.core.context.rules.token_count import AROUND_COVER, count_attachments, count_text
from keryx.core.conversations.rules.message import NewMessage, text_of
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.values import dataclass

FULL: Final = 0.8
"""The share of the window above which a prompt is shortened before it is sent."""
WANTED: Final = 0.5
"""The share of the window to which it is shortened."""
TIGHTER: Final = 0.5
"""The share of a prompt that a provider found too long, to which it is shortened."""
ROUNDS_MAX: Final = 4
"""How many summaries may be made for one prompt; twice as many if messages are pinned."""
TRIES_MAX: Final = 2
"""How often a prompt that a provider found too long is shortened."""
READ_SHARE: Final = 0.6
"""The share of the window that the model reads to write a summary."""
READ_LINE: Final = 8_000
CUT_LINE: Final = 240
"""The characters of one message: ``READ_LINE`` for the model that summarises, ``CUT_LINE`` in a summary without one."""
MANY: Final = 500
"""More messages than this are counted in a thread, so that other conversations are not delayed."""

MADE_WITHOUT_MODEL: Final = (
    "(Made without a model, from the beginnings and ends of what was said; the rest can be searched for.)"
)
COVERED: Final = (
    "{count:,} messages are now a summary of {after:,} tokens instead of {before:,}. "
    "/compress undo takes it back; nothing is lost."
)
WITHOUT_MODEL: Final = " No model wrote it: it holds the beginnings and ends of what was said."
TOO_SHORT: Final = f"There is too little to summarise: the last {KEPT_TURNS} turns stay as they are."
NOT_SMALLER: Final = "A summary would not be smaller than what it stands for, so nothing was changed."

AskModel = Callable[[ModelPrompt], Awaitable[tuple[str, NewMessage] | None]]
"""Asks a model once and returns its name with its answer; None if no model answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """A summary that was stored: the messages it stands for, their tokens before and after, and its writer."""

    count: int
    before: int
    after: int
    by_model: bool


class Compactor:
    """Keeps the prompts of one turn within a window, in tokens."""

    def __init__(
        self,
        stage: Stage,
        *,
        window: int,
        ask_model: AskModel | None,
        settings: ModelSettings | None = None,
        keeps_notes: bool = False,
    ) -> None:
        """Take the way to ask a model for summaries; with ``keeps_notes`` the model also writes notes on the person."""
        self._stage = stage
        self._window = window
        self._ask_model = ask_model
        self._keeps_notes = keeps_notes
        tokens_max = None if settings is None else settings.tokens_max
        self._settings = ModelSettings() if settings is None else replace(settings, tokens_max=None)
        self._full = round(FULL * window)
        if tokens_max is not None:
            self._full = max(window // 2, min(self._full, window - tokens_max))
        self._tries = 0
        self._measured: tuple[ModelPrompt, PromptSize] | None = None

    async def fit(self, prompt: ModelPrompt) -> ModelPrompt:
        """Return the prompt, shortened if it would fill the window."""
        if (await self._measure(prompt)).total <= self._full:
            return prompt
        return await self._shorten(prompt, goal=round(WANTED * self._window)) or prompt

    async def tighten(self, prompt: ModelPrompt) -> ModelPrompt | None:
        """Return a prompt that a provider found too long, much shortened; None if that is not possible."""
        self._tries += 1
        if self._tries > TRIES_MAX:
            return None
        # The prompt that was refused is the upper limit, whatever size the window was thought to have.
        self._window = min(self._window, (await self._measure(prompt)).total)
        self._full = min(self._full, self._window)
        return await self._shorten(prompt, goal=round(TIGHTER * self._window))

    async def measure(self, prompt: ModelPrompt, *, counted: int = 0, answered: int = 0) -> ContextUsage:
        """Return how full the window is; ``counted`` is the provider's count, and ``answered`` tokens are added."""
        size = await self._measure(prompt)
        total = counted if counted >= TRUSTED * size.estimate else size.total
        attachments = count_attachments(prompt.messages)
        rest = total - size.system - size.tools - attachments
        return ContextUsage(
            window=self._window,
            system=size.system,
            tools=size.tools,
            history=max(0, rest) + answered,
            attachments=attachments,
        )

    async def on_request(self, items: Sequence[HistoryItem], *, focus: str | None) -> str:
        """Cover all but the last turns because a person asks for it; return the notice for the person."""
        pinned = await self._stage.pinned()
        plans = await asyncio.to_thread(plan_by_hand, items, window=self._window, pinned=pinned)
        if not plans:
            return TOO_SHORT
        covered = [each for plan in plans if (each := await self._cover(plan, focus=focus)) is not None]
        if not covered:
            return NOT_SMALLER
        notice = COVERED.format(
            count=sum(each.count for each in covered),
            before=sum(each.before for each in covered),
            after=sum(each.after for each in covered),
        )
        return notice if all(each.by_model for each in covered) else notice + WITHOUT_MODEL

    async def _shorten(self, prompt: ModelPrompt, *, goal: int) -> ModelPrompt | None:
        """Cover messages until the prompt is down to the goal; return None if nothing could be covered."""
        shorter: ModelPrompt | None = None
        pinned = await self._stage.pinned()
        for left in reversed(range(2 * ROUNDS_MAX if pinned else ROUNDS_MAX)):
            size = await self._measure(shorter or prompt)
            if shorter is not None and size.total <= goal:
                break
            # Plans use our own estimates, so the provider's tokens are converted.
            room = TokenBudget(
                window=round(self._window / size.scale),
                goal=round(goal / size.scale),
                overhead=size.system + size.tools,
                pinned=pinned,
            )
            plan = await self._plan(room, must=shorter is None or size.total > self._full, is_last=not left)
            if plan is None or await self._cover(plan, focus=None) is None:
                break
            unread = _unread(prompt.messages)
            shorter = replace(prompt, messages=[*await self._stage.reread(), *unread])
        return shorter

    async def _plan(self, room: TokenBudget, *, must: bool, is_last: bool) -> CompactionPlan | None:
        """Return what to cover next; pins only if the prompt ``must`` be shortened and nothing else helps."""
        items = await self._stage.reread()
        gives_way = must and bool(room.pinned)
        plan = None if gives_way and is_last else await asyncio.to_thread(plan_compaction, items, room)
        if plan is None and gives_way:
            plan = await asyncio.to_thread(plan_compaction, items, replace(room, pinned=frozenset()))
        return plan

    async def _cover(self, plan: CompactionPlan, *, focus: str | None) -> CompactionResult | None:
        text, notes, cost = await self._summarise(plan, focus=focus)
        by_model = bool(text)
        if not text:
            cut = await asyncio.to_thread(
                condense,
                plan.items,
                tokens=plan.summary_tokens - count_text(MADE_WITHOUT_MODEL),
                line_length=CUT_LINE,
            )
            text = f"{MADE_WITHOUT_MODEL}\n{cut}"
        after = AROUND_COVER + count_text(text)
        summary = Summary(
            first_seq=plan.first_seq,
            last_seq=plan.last_seq,
            text=text,
            tokens_before=plan.tokens,
            tokens_after=after,
            focus=focus,
            cost=cost,
            notes=notes,
        )
        if after >= plan.tokens or not await self._stage.cover(summary):
            return None
        return CompactionResult(count=plan.message_count, before=plan.tokens, after=after, by_model=by_model)

    async def _summarise(
        self, plan: CompactionPlan, *, focus: str | None
    ) -> tuple[str, tuple[str, ...], SummaryCost]:
        """Return the model's summary, its notes and its cost; the summary is empty if there is none short enough."""
        if self._ask_model is None:
            return "", (), SummaryCost()
        conversation = await asyncio.to_thread(
            condense, plan.items, tokens=round(READ_SHARE * self._window), line_length=READ_LINE
        )
        answered = await self._ask_model(
            summary_prompt(
                conversation,
                tokens=plan.summary_tokens,
                focus=focus,
                with_notes=self._keeps_notes,
                settings=self._settings,
            )
        )
        if answered is None:
            return "", (), SummaryCost()
        model, answer = answered
        cost = SummaryCost(
            model=model,
            input_tokens=answer.input_tokens,
            cached_tokens=answer.cached_tokens,
            output_tokens=answer.output_tokens,
            cost_micros=answer.cost_micros,
        )
        whole = text_of(answer.parts)
        text, notes = split_notes(whole) if self._keeps_notes else (whole.strip(), ())
        # A text somewhat longer than requested is still a summary; half of the conversation is not.
        is_small = count_text(text) <= min(2 * plan.summary_tokens, plan.tokens // 2)
        return (text if is_small else ""), notes, cost

    async def _measure(self, prompt: ModelPrompt) -> PromptSize:
        if self._measured is None or self._measured[0] is not prompt:
            is_long = len(prompt.messages) > MANY
            size = await asyncio.to_thread(measure_prompt, prompt) if is_long else measure_prompt(prompt)
            self._measured = (prompt, size)
        return self._measured[1]


def _unread(messages: Sequence[HistoryItem | NewMessage]) -> list[NewMessage]:
    """Return the people's messages since the last step. They are stored with the next step."""
    unread: list[NewMessage] = []
    for message in reversed(messages):
        if not isinstance(message, NewMessage) or message.role != "user":
            break
        unread.insert(0, message)
    return unread
