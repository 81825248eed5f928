"""The settings of the model agent: which models answer, how long they may take, and what they cost."""

import re
from collections.abc import Mapping
from typing import Any, Final

from keryx.config.readers import NONE, Raw, checked, items, list_of, optional, whole
from keryx.config.setting import PREFIX, Setting
from keryx.core.context.rules.prices import Price, parse_price
from keryx.core.conversations.rules.source import check_known_platform, check_platform
from keryx.core.values.model_name import check_model_name

_PROVIDERS_OWN: Final = re.compile(rf"(?!{PREFIX})[A-Z][A-Z0-9_]*_(?:API_KEY|BASE_URL)")
_TOKENS: Final = whole(1_000, 100_000_000)


def price(raw: Raw) -> Price | None:
    """Read what a model's tokens cost: a list, or a text that is split at its commas; `none` is none."""
    return None if raw is None or raw == NONE else parse_price(tuple(items(raw)))


MODEL: Setting[str | None] = Setting(
    name="model",
    read=optional(checked(check_model_name)),
    default=None,
    help="The model that answers, as `provider:name`; where none is set, the built-in guide does.",
)
ON: Setting[str | None] = Setting(
    name="models.on.<platform>",
    read=optional(checked(check_model_name)),
    default=None,
    check_choice=check_platform,
    check_platforms=check_known_platform,
    help="The model that answers on a platform.",
)
FALLBACKS: Setting[tuple[str, ...]] = Setting(
    name="models.fallbacks",
    read=list_of(check_model_name),
    default=(),
    help="The models that are asked in turn where the chosen one does not answer; a list.",
)
TIMEOUT = Setting(
    name="models.timeout_seconds",
    read=whole(1, 3_600),
    default=120,
    help="How long a model may be silent, before its first word and after any other.",
)
PRICES: Setting[Price | None] = Setting(
    name="models.prices.<model>",
    read=price,
    default=None,
    check_choice=check_model_name,
    help="What a million tokens of a model cost in dollars: input, output; or input, cached input, output; a list.",
)
CONTEXT: Setting[int | None] = Setting(
    name="models.context_tokens",
    read=optional(_TOKENS),
    default=None,
    help="How many tokens a model reads and writes at most; `none` for what is known of it, else 128,000.",
)
CONTEXT_OF: Setting[int | None] = Setting(
    name="models.context_tokens_of.<model>",
    read=_TOKENS,
    default=None,
    check_choice=check_model_name,
    help="The same of one model, written `provider:name`, which wins.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (*(MODEL, ON, FALLBACKS, TIMEOUT, PRICES, CONTEXT, CONTEXT_OF),)


def provider_variables(known: Mapping[str, str]) -> dict[str, str]:
    """Return keys and addresses of model providers, under the names their own packages read."""
    return {name: value for name, value in known.items() if _PROVIDERS_OWN.fullmatch(name)}
