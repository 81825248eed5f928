"""Which models answer a turn: the settings of the model agent, and the order in which models are tried."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from keryx.agents.agent import Brief
from keryx.agents.model.contract import Access
from keryx.config import Configuration
from keryx.config.readers import NONE, Raw, checked, items, list_of, optional, whole
from keryx.config.setting import PREFIX, Setting, Values
from keryx.core.context.rules.prices import Price, parse_price
from keryx.core.conversations.rules.source import check_known_platform, check_platform
from keryx.core.values.model_name import check_model_name
from keryx.values import dataclass

_PROVIDER_VARIABLE: Final = re.compile(rf"(?!{PREFIX})[A-Z][A-Z0-9_]*_(?:API_KEY|BASE_URL)")
_TOKENS: Final = whole(1_000, 100_000_000)


def price(raw: Raw) -> Price | None:
    """Read what a model's tokens cost: a list, or a text that is split at its commas; `none` is none."""
    return None if raw is None or raw == NONE else parse_price(tuple(items(raw)))


MODEL: Setting[str | None] = Setting(
    name="model",
    read=optional(checked(check_model_name)),
    default=None,
    help="The model that answers, as `provider:name`; if none is set, the built-in guide answers.",
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
    help="The models that are asked, in this order, if the chosen model does not answer; a list.",
)
TIMEOUT = Setting(
    name="models.timeout_seconds",
    read=whole(1, 3_600),
    default=120,
    help="The longest time without output of a model, before and after its first word.",
)
PRICES: Setting[Price | None] = Setting(
    name="models.prices.<model>",
    read=price,
    default=None,
    check_choice=check_model_name,
    help="The price of a million tokens of a model in dollars: input, output; or input, cached input, output; a list.",
)
CONTEXT: Setting[int | None] = Setting(
    name="models.context_tokens",
    read=optional(_TOKENS),
    default=None,
    help="The context window of the models in tokens; `none` for each model's known size, else 128,000.",
)
CONTEXT_OF: Setting[int | None] = Setting(
    name="models.context_tokens_of.<model>",
    read=_TOKENS,
    default=None,
    check_choice=check_model_name,
    help="The context window of one model, written `provider:name`; it takes precedence.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (MODEL, ON, FALLBACKS, TIMEOUT, PRICES, CONTEXT, CONTEXT_OF)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model of the session, else of its platform, else this one; and the fallbacks if it fails."""

    model: str | None = None
    by_platform: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Sequence[str] = ()
    context_tokens: int | None = None
    """The context window that the owner set; None if the providers' packages know better."""
    context_tokens_of: Mapping[str, int] = field(default_factory=dict)
    """The context windows of single models, by ``provider:name``."""

    def models_for(self, brief: Brief) -> list[str]:
        """Return the models to ask, in this order; empty if no model was chosen."""
        settings_model = None if brief.model_settings is None else brief.model_settings.model
        platform = brief.context.source.platform
        chosen = brief.model or settings_model or self.by_platform.get(platform) or self.model
        if chosen is None:
            return []
        # A model that failed in the last attempt at this turn, or whose answer was cut off there, is asked last.
        models = [*self.fallbacks, chosen] if brief.has_failed else [chosen, *self.fallbacks]
        return list(dict.fromkeys(models))


def model_choice(values: Values) -> ModelChoice:
    """Return the choice of the settings."""
    return ModelChoice(
        model=values.of(MODEL),
        by_platform={name: model for name, model in values.by_choice(ON).items() if model},
        fallbacks=values.of(FALLBACKS),
        context_tokens=values.of(CONTEXT),
        context_tokens_of={name: tokens for name, tokens in values.by_choice(CONTEXT_OF).items() if tokens},
    )


def access_of(configuration: Configuration) -> Access:
    """Return how the settings reach the providers."""
    values = configuration.values
    return Access(
        variables={
            name: value
            for name, value in configuration.variables.items()
            if _PROVIDER_VARIABLE.fullmatch(name)
        },
        timeout_seconds=values.of(TIMEOUT),
        prices={name: price for name, price in values.by_choice(PRICES).items() if price},
    )
