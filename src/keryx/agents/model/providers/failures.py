"""Failures of a provider as sentences for a person, with whether another attempt can help."""

from collections.abc import Mapping
from typing import Final

from pydantic_ai import exceptions as wrong

from keryx.agents.model.contract import CallFailed
from keryx.clock import SECOND
from keryx.core.values.graphemes import one_line

QUOTED_MAX: Final = 200
EMPTY: Final = "{model} gave an empty answer."
QUOTA: Final = "the account at {provider} has used up its quota; its owner can raise it there."
FILTERED: Final = "{provider} refused to answer this (its content filter)."
UNFINISHED: Final = "the answer of {model} broke off in the middle."
UNREADABLE: Final = "the answer of {model} could not be read."


class TooSlow(TimeoutError):
    """An answer was not finished within its time limit."""


_Sentence = tuple[tuple[type[Exception], ...], str, bool]
# The first entry that matches counts. The last field says whether another attempt can help.
_SENTENCES: Final[tuple[_Sentence, ...]] = (
    ((wrong.ModelAuthenticationError,), "{provider} refused the key. {hint}", False),
    ((wrong.ModelNotFoundError,), "{provider} has no model {name}. {hint}", False),
    (
        (wrong.ModelContextWindowExceededError,),
        "this conversation is too long for {model}, even summarised. /new starts a fresh one, /model chooses another.",
        False,
    ),
    ((wrong.ModelQuotaExceededError,), QUOTA, False),
    ((wrong.ModelRateLimitError,), "{provider} asks for a pause: its rate limit is reached.", True),
    ((wrong.ModelUnavailableError,), "{provider} is overloaded.", True),
    ((wrong.ModelServerError,), "{provider} has a fault of its own ({status}).", True),
    ((TooSlow,), "{model} was not done with its answer in time.", False),
    (
        (wrong.ModelTimeoutError, wrong.ModelRequestTimeout, TimeoutError),
        "{model} was silent for too long.",
        True,
    ),
    ((wrong.ModelConnectionError,), "the connection to {provider} failed.", True),
    ((wrong.ContentFilterError,), FILTERED, False),
    ((wrong.ModelAPIError,), "{provider} refused the request ({status}){quoted}", False),
    ((wrong.UserError,), "{model} cannot be asked this{quoted}", False),
)


def failure_of(error: Exception, model: str, *, heard: bool, hint: str) -> CallFailed:
    """Return the failure for an error of the provider's package.

    ``hint`` says what to do if the key or the name of the model is wrong.
    """
    provider, _, name = model.partition(":")
    words = {"provider": provider, "model": model, "name": repr(name), "hint": hint}
    fitting = ((sentence, passes) for kinds, sentence, passes in _SENTENCES if isinstance(error, kinds))
    sentence, may_pass = next(fitting, (UNREADABLE, True))
    reason = sentence.format(**words, status=_status(error), quoted=_quoted(error))
    retry_after = getattr(error, "retry_after", None) if may_pass else None
    return CallFailed(
        reason,
        may_pass=may_pass,
        retry_after=None if retry_after is None else max(0, round(retry_after * SECOND)),
        heard=heard,
        too_long=isinstance(error, wrong.ModelContextWindowExceededError),
    )


def concerns_key(error: Exception) -> bool:
    """Return whether the provider refused the key."""
    return isinstance(error, wrong.ModelAuthenticationError)


def _status(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    return "no reason given" if status is None else f"HTTP {status}"


def _quoted(error: Exception) -> str:
    """Return the message of the provider, or of its package, on one short line."""
    body: object = str(error) if isinstance(error, wrong.UserError) else getattr(error, "body", None)
    while isinstance(body, Mapping):
        body = body.get("error", body.get("message"))
    return f": {one_line(body, QUOTED_MAX)}" if isinstance(body, str) and body else "."
