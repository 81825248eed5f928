"""Make a model of pydantic-ai by its name, with the owner's keys and addresses, and explain what is missing."""

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_ai.exceptions import ModelNotFoundError, UserError
from pydantic_ai.models import Model, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from keryx.agents.model.contract import CallFailed
from keryx.agents.model.local_servers import LOCAL_SERVERS
from keryx.agents.model.providers import failures
from keryx.core.values.model_name import PROVIDERS, nearest_names

CHAT_OF: Final = dict.fromkeys(("openai", "offline", "lmstudio", "llamacpp"), "openai-chat")
"""``openai`` is the chat API, which every compatible server speaks; ``openai-responses`` is OpenAI's other API."""
OWN_DOMAINS: Final = ("openai.com", "azure.com", "azure.us", "azure.cn")
"""Where the address of a provider may lead that is the provider's own all the same."""
NO_KEY: Final = "none"
"""Sent where an owner's server needs no key: else the package would send it the key of OpenAI."""
FAMILIES: Final = ("openai", "google", "azure")
"""Their variables also apply to names that begin with theirs, such as ``openai-responses``."""
LIST_SECONDS: Final = 5.0


def make_model(name: str, variables: Mapping[str, str]) -> Model:
    """Return the model ``provider:name``, or raise ``CallFailed``; this imports the provider's package."""
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise CallFailed(
            f"{name!r} is not the name of a model; write it as provider:model, such as openai:gpt-5."
        )
    try:
        return infer_model(
            f"{CHAT_OF.get(provider, provider)}:{model}",
            lambda each: _make_provider(each, _given(provider, each, variables)),
        )
    except ValueError as error:
        raise CallFailed(
            f"there is no provider {provider!r}. {nearest_names(provider, PROVIDERS)}"
        ) from error
    except ImportError as error:
        raise CallFailed(
            f"the package for {provider} is not installed; run: pip install 'pydantic-ai-slim[{provider}]'"
        ) from error
    except UserError as error:
        if not key_and_address(provider, variables)["api_key"]:
            raise CallFailed(missing_key(provider)) from error
        raise CallFailed(f"{provider} cannot be set up: {error.message}") from error


def _given(provider: str, package: str, variables: Mapping[str, str]) -> Mapping[str, str | None]:
    """Return the key and the address for a provider of the package; a server on the own machine has its own."""
    if provider not in LOCAL_SERVERS:
        return key_and_address(package, variables)
    own = key_and_address(provider, variables)
    return {**own, "api_key": own["api_key"] or NO_KEY}


def _make_provider(name: str, own: Mapping[str, str | None]) -> Provider[Any]:
    kind = infer_provider_class(name)
    takes = inspect.signature(kind.__init__).parameters
    given = {field: value for field, value in own.items() if field in takes and value}
    made = kind(**given)
    if "base_url" in given or not (address := own["base_url"]):
        return made
    # Some providers have one fixed address, but their client accepts another, such as a company's own relay.
    made.client.base_url = address
    return made


def key_and_address(provider: str, variables: Mapping[str, str]) -> Mapping[str, str | None]:
    """Return the key and the address of a provider; its package looks for missing ones by itself."""
    family = _family(provider)
    key = variables.get(f"{family}_API_KEY")
    if family == "GOOGLE":
        key = key or variables.get("GEMINI_API_KEY")
    address = variables.get(f"{family}_BASE_URL")
    if provider in LOCAL_SERVERS:
        address = address or LOCAL_SERVERS[provider].address
    return {"api_key": key, "base_url": address}


def is_other_server(provider: str, variables: Mapping[str, str]) -> bool:
    """Return whether a server is asked that is not the provider's own, such as one on the owner's machine."""
    address = key_and_address(provider, variables)["base_url"]
    host = urlsplit(address or "").hostname or ""
    is_own = any(host == domain or host.endswith(f".{domain}") for domain in OWN_DOMAINS)
    return provider == "offline" or (bool(address) and not is_own)


def is_chat_api(model: Model) -> bool:
    """Return whether the model is asked through OpenAI's chat API; the class is not imported for this."""
    return any(kind.__name__ == "OpenAIChatModel" for kind in type(model).__mro__)


def server_of(model: Model) -> str:
    """Return the address of the model's server."""
    return model.base_url or model.system


async def failure_hint(name: str, model: Model, error: Exception) -> str:
    """Return what a person can do about a failure that concerns the key or the name of the model."""
    provider, _, wanted = name.partition(":")
    if failures.concerns_key(error):
        return _key_hint(provider)
    if isinstance(error, ModelNotFoundError):
        return nearest_names(wanted, await _list_models(provider, model))
    return ""


def missing_key(provider: str) -> str:
    """Return the error for a provider without its key."""
    return f"there is no key for {provider}. {_key_hint(provider)}"


def _key_hint(provider: str) -> str:
    return f"Set {_family(provider)}_API_KEY in the environment or in the profile's .env."


def _family(provider: str) -> str:
    """Return the prefix of the provider's variables."""
    first = provider.partition("-")[0]
    return (first if first in FAMILIES else provider).upper().replace("-", "_")


async def _list_models(provider: str, model: Model) -> list[str]:
    """Return the models that the provider lists, or those known when Keryx was built."""
    client: Any = getattr(model, "client", None)
    try:
        async with asyncio.timeout(LIST_SECONDS):
            # Google's client has a separate attribute for its asynchronous calls.
            found = [each async for each in await getattr(client, "aio", client).models.list()]
        listed = [str(getattr(each, "id", None) or each.name).removeprefix("models/") for each in found]
    except Exception:  # noqa: BLE001 - the list only helps to guess; the failure itself must be reported
        listed = []
    return listed or [
        known.partition(":")[2] for known in known_model_names() if known.startswith(f"{provider}:")
    ]
