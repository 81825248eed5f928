"""Call models of any provider with pydantic-ai's model layer. Importing this module loads providers' packages.

One request gives one answer. The agent runs and records the steps, tools and retries; nothing is retried here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, Final, cast

from pydantic_ai import messages as wire
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings as WireSettings
from pydantic_ai.tools import ToolDefinition

from keryx.agents.agent import AnswerListener
from keryx.agents.model.contract import Access, CallFailed, ModelPrompt
from keryx.agents.model.providers import failures
from keryx.agents.model.providers.answer_message import answer_message
from keryx.agents.model.providers.build_request import Framing, provider_messages
from keryx.agents.model.providers.provider_setup import (
    failure_hint,
    is_chat_api,
    is_other_server,
    key_and_address,
    make_model,
    missing_key,
    server_of,
)
from keryx.agents.model.providers.server_limits import Limit, ServerLimits
from keryx.core.conversations.rules.message import NewMessage

CACHE: Final = {"anthropic_cache_instructions": True}
"""The tools and instructions are the same in every conversation. Its prefix makes others ignore the setting."""


class ProviderCaller:
    """Calls models; the connections of each model are kept until ``close``."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._models: dict[str, Model] = {}
        self._limits = ServerLimits()
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def ask(self, model: str, prompt: ModelPrompt, listener: AnswerListener) -> NewMessage:
        """Return the answer, whose pieces the listener has received; raise ``CallFailed`` if there is none."""
        used = await self._model(model)
        relay = _EventRelay(listener)
        limits = self._limits_of(model, used)
        try:
            response = await self._stream(used, prompt, relay, limits)
        except (AgentRunError, UserError, TimeoutError) as error:
            if not relay.has_text and self._learn(error, model, used, limits):
                return await self.ask(model, prompt, listener)
            if failures.concerns_key(error) and self._has_no_key(model):
                provider = model.partition(":")[0]
                raise CallFailed(missing_key(provider)) from error
            hint = await failure_hint(model, used, error)
            raise failures.failure_of(error, model, heard=relay.has_text, hint=hint) from error
        return answer_message(response, model, heard=relay.has_text, price=self._access.prices.get(model))

    async def prepare(self, model: str) -> None:
        """Load what the model needs; raise ``CallFailed`` if it cannot be called."""
        await self._model(model)

    async def window(self, model: str) -> int | None:
        """Return the size of the model's context window in tokens, if the packages know it."""
        try:
            return (await self._model(model)).profile.get("context_window")
        except CallFailed:
            return None  # the call itself will report the failure

    async def close(self) -> None:
        """Close all connections."""
        self._models.clear()
        await self._open.aclose()

    def _limits_of(self, name: str, model: Model) -> frozenset[Limit]:
        """Return the limits of a server with OpenAI's chat API; other APIs have a place for the context block."""
        if not is_chat_api(model):
            return frozenset()
        is_own = not is_other_server(name.partition(":")[0], self._access.variables)
        return self._limits.of(name, server=server_of(model), is_own=is_own)

    def _learn(self, error: Exception, name: str, model: Model, known: frozenset[Limit]) -> bool:
        """Return whether the error shows a limit of the server that the request can be brought within."""
        if not is_chat_api(model):
            return False
        text = f"{error} {getattr(error, 'body', '')}"
        return self._limits.learn(text, name, server=server_of(model), known=known)

    async def _stream(
        self, model: Model, prompt: ModelPrompt, relay: "_EventRelay", limits: frozenset[Limit]
    ) -> wire.ModelResponse:
        offers = () if "no tools" in limits else prompt.tools
        tools = [
            ToolDefinition(
                name=each.name, description=each.description, parameters_json_schema=dict(each.parameters)
            )
            for each in offers
        ]
        parameters = ModelRequestParameters(function_tools=tools)
        framing = Framing(
            instructions=prompt.instructions,
            context=prompt.context,
            provider=model.system,
            turn_id=prompt.turn_id,
            time_lines=prompt.time_lines,
            is_group=prompt.is_group,
            request=prompt.request,
            limits=limits,
            marks_cache=model.system == "anthropic",
        )
        messages = model.prepare_messages(
            provider_messages(prompt.messages, framing, media=prompt.media), parameters
        )
        settings = _settings(prompt, has_tools=bool(tools))
        now = asyncio.get_running_loop().time
        ends_at = now() + self._access.answer_seconds
        async with (
            asyncio.timeout(self._access.timeout_seconds) as patience,
            model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream,
            aclosing(cast("AsyncIterator[Any]", aiter(stream))) as events,  # type: ignore[type-var]
        ):
            async for event in events:
                if now() > ends_at:
                    raise failures.TooSlow
                patience.reschedule(now() + self._access.timeout_seconds)
                await relay.pass_on(event)
            return stream.get()

    async def _model(self, name: str) -> Model:
        """Return the model of this name. It is loaded in a thread, because its package takes a second or more."""
        async with self._opening:
            if name not in self._models:
                made = await asyncio.to_thread(make_model, name, self._access.variables)
                await self._open.enter_async_context(made)
                self._models[name] = made
            return self._models[name]

    def _has_no_key(self, name: str) -> bool:
        """Return whether this is an owner's own server without a key; many of them need none."""
        variables = key_and_address(name.partition(":")[0], self._access.variables)
        return bool(variables["base_url"]) and not variables["api_key"]


class _EventRelay:
    """Passes the pieces of an answer on to a listener, and notes whether there were any."""

    def __init__(self, listener: AnswerListener) -> None:
        self._listener = listener
        self.has_text = False

    async def pass_on(self, event: object) -> None:
        match event:
            case (
                wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text))
                | wire.PartStartEvent(part=wire.TextPart(content=text))
            ) if text:
                self.has_text = True
                await self._listener.say(text)
            case (
                wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=str(text)))
                | wire.PartStartEvent(part=wire.ThinkingPart(content=text))
            ) if text:
                self.has_text = True
                await self._listener.think(text)
            case _:
                return


def _settings(prompt: ModelPrompt, *, has_tools: bool) -> WireSettings:
    wanted = prompt.settings
    # The agent retries in view of the person; the provider's package must not retry by itself.
    settings = cast(WireSettings, {"max_retries": 0, **CACHE})
    if has_tools and not prompt.may_call:
        settings["tool_choice"] = "none"
    if wanted.temperature is not None:
        settings["temperature"] = wanted.temperature
    if wanted.tokens_max is not None:
        settings["max_tokens"] = wanted.tokens_max
    if wanted.reasoning_effort is not None:
        settings["thinking"] = False if wanted.reasoning_effort == "none" else wanted.reasoning_effort
    if wanted.extra:
        settings["extra_body"] = wanted.extra
    return settings
