"""Asks models of any provider, by pydantic-ai's model layer; the one module that loads providers' packages.

One request, one answer: steps, tools and retries are the agent's, which records them; nothing here is tried twice.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, Final, cast

from pydantic_ai import messages as wire
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model, ModelRequestParameters, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings as WireSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from keryx.agents import failures
from keryx.agents.calling import Access, CallFailed, Listener, Question
from keryx.agents.conversation import Framing, answer_of, model_messages
from keryx.domain.message import NewMessage, ThinkingPart
from keryx.domain.model_name import PROVIDERS, nearest_names
from keryx.domain.prices import Price, cost_of
from keryx.domain.settings import ModelSettings

CHAT_OF: Final = {"openai": "openai-chat", "offline": "openai-chat"}
"""``openai`` is the chat API, which every compatible server speaks; ``openai-responses`` is OpenAI's other one."""
FAMILIES: Final = ("openai", "google", "azure")
"""Whose variables also go for names that begin so, such as ``openai-responses``."""
NO_END_OF_THEIR_OWN: Final = frozenset({"snowflake", "xai"})
"""Who never say in a word of their own why an answer ended."""
_FIELDS: Final = {"key": "api_key", "address": "base_url"}
LIST_SECONDS: Final = 5.0
COST_MICROS: Final = 1_000_000
CACHE: Final = {"anthropic_cache_instructions": True}
"""The tools and instructions are the same in every conversation. Others pass over the setting, by its prefix."""
THINKING_DETAILS: Final = ("reasoning_tokens", "thinking_tokens", "thoughts_tokens")


class Providers:
    """Asks models; each one's connections are kept until ``close``."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._models: dict[str, Model] = {}
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def ask(self, model: str, question: Question, listener: Listener) -> NewMessage:
        """Return the answer, whose pieces the listener has heard; raise ``CallFailed`` where there is none."""
        used = await self._model(model)
        heard = _Heard(listener)
        try:
            response = await self._stream(used, question, heard)
        except (AgentRunError, UserError, TimeoutError) as error:
            if failures.concerns_key(error) and self._goes_without_key(model):
                provider = model.partition(":")[0]
                raise CallFailed(_missing(provider, "key")) from error
            hint = await self._advice(model, used, error)
            raise failures.failure_of(error, model, heard=heard.anything, hint=hint) from error
        return _message(response, model, heard=heard.anything, price=self._access.prices.get(model))

    async def prepare(self, model: str) -> None:
        """Load what the model needs; raise ``CallFailed`` where it cannot be asked."""
        await self._model(model)

    async def window(self, model: str) -> int | None:
        """Return how many tokens the model reads and writes at most, if the packages know it."""
        try:
            return (await self._model(model)).profile.get("context_window")
        except CallFailed:
            return None  # who asks it is told why

    async def close(self) -> None:
        """Let go of connections."""
        self._models.clear()
        await self._open.aclose()

    async def _stream(self, model: Model, question: Question, heard: "_Heard") -> wire.ModelResponse:
        parameters = ModelRequestParameters(function_tools=[_tool(offer) for offer in question.tools])
        framing = Framing(
            instructions=question.instructions,
            context=question.context,
            provider=model.system,
            is_group=question.is_group,
            request=question.request,
            marks_cache=model.system == "anthropic",
        )
        talk = model.prepare_messages(
            model_messages(question.spoken, framing, media=question.media), parameters
        )
        settings = _settings(question)
        now = asyncio.get_running_loop().time
        ends_at = now() + self._access.answer_seconds
        async with (
            asyncio.timeout(self._access.timeout_seconds) as patience,
            model_request_stream(
                model, talk, model_settings=settings, model_request_parameters=parameters
            ) as stream,
            aclosing(cast("AsyncIterator[Any]", aiter(stream))) as events,  # type: ignore[type-var]
        ):
            async for event in events:
                if now() > ends_at:
                    raise failures.TooSlow
                patience.reschedule(now() + self._access.timeout_seconds)
                await heard.hear(event)
            return stream.get()

    async def _model(self, name: str) -> Model:
        """Return the model of this name; what it needs is loaded in a thread, because that takes a second or more."""
        async with self._opening:
            if name not in self._models:
                made = await asyncio.to_thread(self._make, name)
                await self._open.enter_async_context(made)
                self._models[name] = made
            return self._models[name]

    def _make(self, name: str) -> Model:
        provider, colon, model = name.partition(":")
        if not (provider and colon and model):
            raise CallFailed(f"{name!r} names no model; write it as provider:model, such as openai:gpt-5.")
        try:
            return infer_model(f"{CHAT_OF.get(provider, provider)}:{model}", self._provider)
        except ValueError as error:
            raise CallFailed(
                f"there is no provider {provider!r}. {nearest_names(provider, PROVIDERS)}"
            ) from error
        except ImportError as error:
            raise CallFailed(
                f"the package for {provider} is not installed; run: pip install 'pydantic-ai-slim[{provider}]'"
            ) from error
        except UserError as error:
            missing = "address" if "_BASE_URL" in error.message else "key"
            if not self._variables_of(provider)[_FIELDS[missing]]:
                raise CallFailed(_missing(provider, missing)) from error
            raise CallFailed(f"{provider} cannot be set up: {error.message}") from error

    def _provider(self, name: str) -> Provider[Any]:
        made_of = infer_provider_class(name)
        takes = inspect.signature(made_of.__init__).parameters
        given = {
            field: value for field, value in self._variables_of(name).items() if field in takes and value
        }
        made = made_of(**given)
        if "base_url" in given or not (address := self._variables_of(name)["base_url"]):
            return made
        # Some providers have one address; their client can still be led to another, such as a company's own relay.
        made.client.base_url = address
        return made

    def _variables_of(self, provider: str) -> Mapping[str, str | None]:
        """Return the key and the address of a provider; what is not there, its package looks for itself."""
        variables, family = self._access.variables, _family(provider)
        key = variables.get(f"{family}_API_KEY")
        if family == "GOOGLE":
            key = key or variables.get("GEMINI_API_KEY")
        return {"api_key": key, "base_url": variables.get(f"{family}_BASE_URL")}

    def _goes_without_key(self, name: str) -> bool:
        """Say whether a server of somebody's own is asked without a key, which many take."""
        variables = self._variables_of(name.partition(":")[0])
        return bool(variables["base_url"]) and not variables["api_key"]

    async def _advice(self, name: str, model: Model, error: Exception) -> str:
        """Return what to do about a failure, where a name or a key is the matter."""
        provider, _, wanted = name.partition(":")
        if failures.concerns_key(error):
            return _hint(provider, "key")
        if failures.concerns_name(error):
            return nearest_names(wanted, await _listed(provider, model))
        return ""


class _Heard:
    """Passes on what comes, and notes whether anything did."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.anything = False

    async def hear(self, event: object) -> None:
        match event:
            case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text)):
                await self._say(text)
            case wire.PartStartEvent(part=wire.TextPart(content=text)):
                await self._say(text)
            case wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=str(text))):
                await self._think(text)
            case wire.PartStartEvent(part=wire.ThinkingPart(content=text)):
                await self._think(text)
            case _:
                return

    async def _say(self, text: str) -> None:
        if text:
            self.anything = True
            await self._listener.say(text)

    async def _think(self, text: str) -> None:
        if text:
            self.anything = True
            await self._listener.think(text)


def _message(response: wire.ModelResponse, model: str, *, heard: bool, price: Price | None) -> NewMessage:
    """Return the answer with what it used; an empty or unfinished one is a failure."""
    parts = answer_of(response)
    provider = model.partition(":")[0]
    if response.finish_reason == "content_filter" and all(isinstance(part, ThinkingPart) for part in parts):
        raise CallFailed(failures.FILTERED.format(provider=provider), heard=heard)
    if not _is_whole(response, provider):
        raise CallFailed(failures.UNFINISHED.format(model=model), may_pass=True, heard=heard)
    if all(isinstance(part, ThinkingPart) for part in parts):
        raise CallFailed(failures.EMPTY.format(model=model), may_pass=True, heard=heard)
    usage = response.usage
    return NewMessage(
        role="assistant",
        parts=parts,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=_thinking(usage),
        cost_micros=_cost(response, price),
        finish_reason=response.finish_reason,
    )


def _is_whole(response: wire.ModelResponse, provider: str) -> bool:
    """Say whether the model came to an end, and not only its connection.

    A stream of OpenAI's shape that ends without a reason, as a relay may cut it, is taken for "stop" by pydantic-ai;
    only the provider's own word beside it tells the two apart.
    """
    if response.finish_reason is None or response.state != "complete":
        return False
    said_so = "finish_reason" in (response.provider_details or {})
    return said_so or response.finish_reason != "stop" or provider in NO_END_OF_THEIR_OWN


def _thinking(usage: RequestUsage) -> int:
    """Return how many tokens were thought, under whichever name the provider's reader keeps them."""
    named = (usage.details.get(name, 0) for name in THINKING_DETAILS)
    return max(usage.output_reasoning_tokens, *named)


def _cost(response: wire.ModelResponse, price: Price | None) -> int:
    """Return what it cost by the owner's price, else by the list that came with the packages; 0 where both are mute."""
    if price is not None:
        usage = response.usage
        return cost_of(
            price,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
        )
    try:
        return round(response.cost().total_price * COST_MICROS)
    except (LookupError, ValueError, AssertionError):
        return 0


def _tool(offer: Any) -> ToolDefinition:
    return ToolDefinition(
        name=offer.name, description=offer.description, parameters_json_schema=dict(offer.parameters)
    )


def _settings(question: Question) -> WireSettings:
    wanted: ModelSettings = question.settings
    # What fails is tried again by the agent, in view of everybody, and not by the provider's package.
    settings = cast(WireSettings, {"max_retries": 0, **CACHE})
    if question.tools and not question.may_call:
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


def _family(provider: str) -> str:
    """Return how the variables of a provider begin."""
    first = provider.partition("-")[0]
    return (first if first in FAMILIES else provider).upper().replace("-", "_")


def _missing(provider: str, missing: str) -> str:
    return f"there is no {missing} for {provider}. {_hint(provider, missing)}"


def _hint(provider: str, missing: str) -> str:
    """Return how to give a provider its key or its address."""
    return f"Set {_family(provider)}_{_FIELDS[missing].upper()} in the environment or in the profile's .env."


async def _listed(provider: str, model: Model) -> list[str]:
    """Return the models the provider says it has, or where it does not say, those known when Keryx was built."""
    client: Any = getattr(model, "client", None)
    try:
        async with asyncio.timeout(LIST_SECONDS):
            # Google's client has its own half for those who must not block.
            listed = [_id(each) async for each in await getattr(client, "aio", client).models.list()]
    except Exception:  # noqa: BLE001 - a list to guess from is no reason to hide the failure itself
        listed = []
    return listed or [
        known.partition(":")[2] for known in known_model_names() if known.startswith(f"{provider}:")
    ]


def _id(listed: Any) -> str:
    """Return the name of a model in a provider's list."""
    return str(getattr(listed, "id", None) or listed.name).removeprefix("models/")
