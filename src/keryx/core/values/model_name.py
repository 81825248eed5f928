"""Names of models, ``provider:name``, and the known providers. Pure: does not look at API keys or packages."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from keryx.errors import InvalidValue

NEAREST: Final = 3
NAME_SHOWN: Final = 40

PROVIDERS: Final = (
    *("openai", "anthropic", "google", "openrouter", "ollama", "lmstudio", "llamacpp", "vllm"),
    *("alibaba", "azure", "azure-responses", "bedrock", "bedrock-mantle", "cerebras", "cohere", "crusoe"),
    *("deepseek", "fireworks", "github", "github-copilot", "google-cloud", "groq", "heroku", "huggingface"),
    *("litellm", "meta", "mistral", "moonshotai", "nebius", "openai-chat", "openai-chatgpt", "openai-codex"),
    *("openai-responses", "ovhcloud", "sambanova", "snowflake", "together", "vercel", "xai", "zai"),
    "offline",
)
"""Keryx's own providers, and those whose chat models pydantic-ai supports, best known first; a test compares them."""
SHORT: Final = {"offline": "offline:smollm2"}
"""Short names that need no model name."""


def check_model_name(name: str) -> str:
    """Return the stored form of a model's name, or raise ``InvalidValue`` with the correct form."""
    provider, colon, model = (part.strip() for part in SHORT.get(name.strip(), name).partition(":"))
    if not (provider and colon and model):
        raise InvalidValue(
            f"{name[:NAME_SHOWN]!r} names no model; write it as provider:name, such as openai:gpt-5."
        )
    if provider not in PROVIDERS:
        raise InvalidValue(
            f"There is no provider {provider[:NAME_SHOWN]!r}. {nearest_names(provider, PROVIDERS)}"
        )
    return f"{provider}:{model}"


def nearest_names(name: str, known: Sequence[str]) -> str:
    """Return a sentence with the nearest known names, or with a place to look them up."""
    near = get_close_matches(name, known, n=NEAREST, cutoff=0.5) or list(known[:NEAREST])
    return f"Did you mean {' or '.join(near)}?" if near else "Look up its name at the provider."
