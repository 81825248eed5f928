"""Ask the chosen model, then its fallbacks, and try those again that may recover, as long as there is time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from keryx.agents.agent import AnswerListener
from keryx.agents.model.contract import CallFailed, ModelCaller, ModelPrompt
from keryx.clock import MINUTE, SECOND, Clock, Micros
from keryx.core.conversations.rules.message import NewMessage
from keryx.errors import AgentFailed

PATIENCE: Final[Micros] = 60 * SECOND
"""How long a turn retries by itself. After that it releases its session and is tried again as a whole."""
PAUSE_FIRST: Final[Micros] = SECOND
PAUSE_MAX: Final[Micros] = 10 * MINUTE
"""A turn does not wait for a longer pause: it fails, and the person can try again later."""
CUT_RETRY: Final[Micros] = SECOND
"""When a turn whose answer was cut off is tried again; the text that was shown is taken back by then."""

Sleep = Callable[[float], Awaitable[None]]


class PromptTooLong(AgentFailed):
    """The prompt is longer than a model's context window."""

    def __init__(self, reason: str, *, model: str) -> None:
        super().__init__(reason)
        self.model = model


class AllModelsFailed(AgentFailed):
    """No model gave an answer."""


class NullListener:
    """A listener for answers that are not shown."""

    async def say(self, text: str) -> None:
        """Drop the text."""

    async def think(self, text: str) -> None:
        """Drop the text."""

    async def pause(self, reason: str) -> None:
        """Drop the reason."""


async def ask_with_fallbacks(
    caller: ModelCaller,
    models: Sequence[str],
    prompt: ModelPrompt,
    listener: AnswerListener,
    *,
    clock: Clock,
    sleep: Sleep = asyncio.sleep,
) -> tuple[str, NewMessage]:
    """Return the model that answered, and its answer.

    Raise ``PromptTooLong`` as soon as the prompt is too long for one model, and ``AgentFailed`` if no model answers.
    """
    failed: dict[str, CallFailed] = {}
    ends_at = clock.monotonic() + PATIENCE
    pause = PAUSE_FIRST
    while True:
        for model in models:
            if model in failed and not failed[model].may_pass:
                continue
            try:
                return model, await caller.ask(model, prompt, listener)
            except CallFailed as failure:
                _raise_if_final(failure, model)
                failed[model] = failure
        wait = _next_wait(failed, pause)
        if clock.monotonic() + wait > ends_at:
            raise AllModelsFailed(_reasons(failed), retry_after=wait)
        await listener.pause(f"{_reasons(failed)} Trying again in {max(1, round(wait / SECOND))} s.")
        await sleep(wait / SECOND)
        pause *= 2


def _raise_if_final(failure: CallFailed, model: str) -> None:
    """Raise the error of a failure after which no other model is asked."""
    if failure.heard:
        # Text that was shown cannot be taken back here, but the turn as a whole can begin again.
        again = (failure.retry_after or CUT_RETRY) if failure.may_pass else None
        raise AgentFailed(failure.reason, retry_after=again) from failure
    if failure.too_long:
        raise PromptTooLong(failure.reason, model=model) from failure


def _next_wait(failed: Mapping[str, CallFailed], pause: Micros) -> Micros:
    """Return the time until the next attempt, or raise ``AllModelsFailed`` if there is none soon."""
    wait = min((each.retry_after or pause for each in failed.values() if each.may_pass), default=None)
    if wait is None:
        raise AllModelsFailed(_reasons(failed))
    if wait > PAUSE_MAX:
        raise AllModelsFailed(f"{_reasons(failed)} It may be asked again in {round(wait / MINUTE)} minutes.")
    return wait


def _reasons(failed: Mapping[str, CallFailed]) -> str:
    """Return why no model answered: the reason of the chosen model, then those of its fallbacks."""
    first, *others = (failure.reason for failure in failed.values())
    return first if not others else f"{first} Nor could another: {' '.join(others)}"
