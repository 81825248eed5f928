"""The model agent: it asks a model, runs the tools that the model calls, and asks again until there is an answer.

The steps are Keryx's own and not a library's, so that each is stored before it takes effect. After a crash the turn
continues from the last step: a prompt is built from the stored messages only. No provider's package is loaded before
the first turn needs it.
"""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from keryx.agents.agent import (
    NO_ANSWER,
    SILENT_PURPOSES,
    Agent,
    Answer,
    AnswerListener,
    Brief,
    ReadMedia,
    Stage,
    no_media,
)
from keryx.agents.call_ids import call_ids, take_call_id
from keryx.agents.model.ask_with_fallbacks import (
    AllModelsFailed,
    NullListener,
    PromptTooLong,
    Sleep,
    ask_with_fallbacks,
)
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.compaction import Compactor
from keryx.agents.model.contract import Access, CallFailed, ModelCaller, ModelPrompt
from keryx.agents.model.offline import ModelRouter
from keryx.agents.model.turn_prompt import model_use, read_attachments, title_prompt, turn_prompt
from keryx.clock import Clock
from keryx.core.context.rules.compaction import WINDOW_TOKENS
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.repeated_calls import circling_reason
from keryx.core.conversations.rules.message import Message, NewMessage, ToolCallPart
from keryx.core.people.rules.toolset import MEMORY
from keryx.errors import AgentFailed

STEPS_MAX: Final = 50
"""How often a turn may call tools before it must answer."""

TOO_MANY_STEPS: Final = f"it called tools {STEPS_MAX} times and did not come to an answer."

ALONE: Final = (
    "this is too long for {model}, with nothing before it but the instructions and tools. Send less at once, give "
    "fewer sets of tools (`toolsets`), or choose a model that reads more with /model."
)
WAY_BACK: Final = "/model none takes back the model that this conversation chose."


class ModelAgent:
    """Answers with a model; ``otherwise`` answers if no model was chosen."""

    def __init__(
        self,
        choice: ModelChoice,
        access: Access,
        *,
        otherwise: Agent,
        clock: Clock,
        read_media: ReadMedia = no_media,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._choice = choice
        self._access = access
        self._otherwise = otherwise
        self._clock = clock
        self._read_media = read_media
        self._sleep = sleep
        self._caller: ModelCaller | None = None
        self._loading = asyncio.Lock()

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""
        try:
            return await self._run(brief, stage)
        except AllModelsFailed as failure:
            if brief.model is None or failure.retry_after is not None:
                raise
            raise AgentFailed(f"{failure.reason} {WAY_BACK}") from failure

    async def _run(self, brief: Brief, stage: Stage) -> Answer:
        models = self._choice.models_for(brief)
        if not models:
            return await self._otherwise.run(brief, stage)
        if brief.purpose == "compress":
            return await self._compress(models, brief, stage)
        if brief.purpose == "title":
            prompt = title_prompt(brief.messages)
            model, answer = await self._ask(models, prompt, NullListener())
            await stage.note_model(model_use(model, prompt))
            return replace(NO_ANSWER, unsaid=answer)
        is_silent = brief.purpose in SILENT_PURPOSES
        if is_silent and not (brief.purpose == "flush" and brief.tools):
            return NO_ANSWER
        listener = NullListener() if is_silent else stage
        answer = await self._converse(models, brief, stage, listener)
        return replace(NO_ANSWER, unsaid=answer) if is_silent else Answer(message=answer)

    async def warm_up(self) -> None:
        """Load everything the first turn will need; a turn reports a model that cannot be asked."""
        caller = await self._load()
        for model in filter(None, {self._choice.model, *self._choice.by_platform.values()}):
            with suppress(CallFailed):
                await caller.prepare(model)

    async def close(self) -> None:
        """Close all connections."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.close()
        await self._otherwise.close()

    async def _converse(
        self, models: Sequence[str], brief: Brief, stage: Stage, listener: AnswerListener
    ) -> NewMessage:
        """Ask, run the tools and ask again, until there is an answer without calls."""
        prompt, compactor = await self._prompt(brief), await self._compactor(models, brief, stage)
        steps: list[NewMessage] = []
        so_far = _messages_of_turn(brief)
        for number in range(STEPS_MAX + 1):
            if (reason := circling_reason(so_far)) is not None:
                raise AgentFailed(reason)
            prompt = await compactor.fit(replace(prompt, may_call=number < STEPS_MAX))
            # Before the call and not after: a turn that is stopped, fails or dies used the model too.
            estimate = await compactor.measure(prompt)
            await stage.note_model(replace(model_use(models[0], prompt), context_usage=estimate))
            prompt, model, answer = await self._ask_fitting(models, prompt, listener, compactor)
            usage = await compactor.measure(
                prompt, counted=answer.input_tokens, answered=answer.output_tokens
            )
            await stage.note_model(replace(model_use(model, prompt), context_usage=usage))
            # A summary may stand for earlier steps of this turn. Their ids are taken all the same.
            step = _with_unique_ids(answer, taken=call_ids([*steps, *prompt.messages]))
            steps.append(step)
            if not any(isinstance(part, ToolCallPart) for part in step.parts):
                return step
            if not prompt.may_call:
                break
            done = await stage.act(step)
            results = [NewMessage(role="tool", parts=(result,)) for result in done.results]
            so_far += [step, *results]
            prompt = replace(
                prompt,
                messages=[*prompt.messages, step, *results, *done.joined],
                media={**prompt.media, **await read_attachments(done.joined, self._read_media)},
            )
        raise AgentFailed(TOO_MANY_STEPS)

    async def _ask_fitting(
        self, models: Sequence[str], prompt: ModelPrompt, listener: AnswerListener, compactor: Compactor
    ) -> tuple[ModelPrompt, str, NewMessage]:
        """Ask with a prompt that fits into the model's context window; return the prompt that was answered too.

        A prompt that cannot be made short enough for one model may fit into another's window.
        """
        left, first = list(models), None
        while True:
            try:
                return prompt, *await self._ask(left, prompt, listener)
            except PromptTooLong as failure:
                shorter = await compactor.tighten(prompt)
                if shorter is not None:
                    prompt = shorter
                    continue
                left.remove(failure.model)
                first = first or failure
                if not left:
                    reason = ALONE.format(model=first.model) if _is_alone(prompt) else first.reason
                    raise AgentFailed(reason) from failure

    async def _ask(
        self, models: Sequence[str], prompt: ModelPrompt, listener: AnswerListener
    ) -> tuple[str, NewMessage]:
        caller = await self._load()
        return await ask_with_fallbacks(
            caller, models, prompt, listener, clock=self._clock, sleep=self._sleep
        )

    async def _compress(self, models: Sequence[str], brief: Brief, stage: Stage) -> Answer:
        """Summarise the conversation because a person asks for it, and tell the person the result."""
        compactor = await self._compactor(models, brief, stage)
        notice = await compactor.on_request(brief.messages, focus=brief.focus)
        prompt = replace(await self._prompt(brief), messages=await stage.reread())
        usage = await compactor.measure(prompt)
        await stage.note_model(replace(model_use(models[0], prompt), context_usage=usage))
        return Answer(message=None, notice=notice)

    async def _compactor(self, models: Sequence[str], brief: Brief, stage: Stage) -> Compactor:
        choice, caller = self._choice, await self._load()

        async def ask_once(prompt: ModelPrompt) -> tuple[str, NewMessage] | None:
            for model in models:
                with suppress(CallFailed):
                    return model, await caller.ask(model, prompt, NullListener())
            return None

        window = choice.context_tokens_of.get(models[0]) or choice.context_tokens
        return Compactor(
            stage,
            window=window or await caller.window(models[0]) or WINDOW_TOKENS,
            ask_model=ask_once,
            settings=brief.model_settings,
            # As before a reset, notes are kept without asking: later no person could say what was lost.
            keeps_notes=any(offer.toolset == MEMORY for offer in brief.tools),
        )

    async def _prompt(self, brief: Brief) -> ModelPrompt:
        return turn_prompt(brief, media=await read_attachments(brief.messages, self._read_media))

    async def _load(self) -> ModelCaller:
        """Return the caller of models. It is loaded in a thread, because the packages take a second or more."""
        async with self._loading:
            if self._caller is None:
                module = await asyncio.to_thread(
                    importlib.import_module, "keryx.agents.model.providers.caller"
                )
                self._caller = ModelRouter(module.ProviderCaller, self._access)
            return self._caller


def _with_unique_ids(answer: NewMessage, *, taken: set[str]) -> NewMessage:
    """Return the answer with ids that no earlier call has: some providers count from one in every answer."""
    parts = (
        replace(part, call_id=take_call_id(part.call_id, taken)) if isinstance(part, ToolCallPart) else part
        for part in answer.parts
    )
    return replace(answer, parts=tuple(parts))


def _messages_of_turn(brief: Brief) -> list[Message | NewMessage]:
    """Return what the turn did before it went on here, after a person's answer or a crash."""
    return [each for each in brief.messages if isinstance(each, Message) and each.turn_id == brief.turn_id]


def _is_alone(prompt: ModelPrompt) -> bool:
    """Return whether the conversation has only begun, so that a new one would be no shorter."""
    asked = [each for each in prompt.messages if isinstance(each, Cover) or each.role == "user"]
    return len(asked) <= 1 and not any(isinstance(each, Cover) for each in asked)
