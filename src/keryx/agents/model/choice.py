"""Which models answer a turn, in which order they are tried, and how the settings say so."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from keryx.agents.agent import Brief
from keryx.agents.model.contract import Access
from keryx.agents.model.settings import (
    CONTEXT,
    CONTEXT_OF,
    FALLBACKS,
    MODEL,
    ON,
    PRICES,
    TIMEOUT,
    provider_variables,
)
from keryx.config import Configuration
from keryx.config.setting import Values
from keryx.values import dataclass


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
        variables=provider_variables(configuration.variables),
        timeout_seconds=values.of(TIMEOUT),
        prices={name: price for name, price in values.by_choice(PRICES).items() if price},
    )
