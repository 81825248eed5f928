"""What a server refuses in the form of a request, learned from its errors and remembered while the process lives.

A chat template belongs to a model. That the system message must come first is assumed of the whole server, because
most templates there will agree, and every template reads such a request.
"""

import re
from typing import Final, Literal

Limit = Literal["system first", "no system", "no tools"]
"""One system message, first, then users and model in turn; no system message at all; no tools and their results."""
LIMITS: Final[tuple[Limit, ...]] = ("system first", "no system", "no tools")
"""From the mildest on. A template that refuses the order of roles does not say which role it stumbled over."""

_SPELLED: Final[tuple[tuple[re.Pattern[str], tuple[Limit, ...]], ...]] = (
    (
        # Ollama; llama.cpp without --jinja; vLLM without its parser for calls; templates that know no such role.
        re.compile(
            r"not support (?:tools|functions?)\b|tools param requires|tool choice requires|tool-call-parser"
            r"|tool (?:role|message|call)s? (?:is|are)? ?not supported",
            re.IGNORECASE,
        ),
        ("no tools",),
    ),
    (
        # Gemma's template and others.
        re.compile(
            r"system (?:role|message|prompt)s? (?:is |are )?not supported|not support (?:a )?system",
            re.IGNORECASE,
        ),
        ("no system",),
    ),
    (
        re.compile(r"only user and assistant roles", re.IGNORECASE),
        ("no system", "no tools"),
    ),
    (
        re.compile(
            r"system message must|system .{0,40}(?:at the beginning|come first|be first)|roles must alternate",
            re.IGNORECASE,
        ),
        LIMITS,
    ),
)
"""The words of servers' errors, and what to leave out in this order. The first that is found counts."""


class ServerLimits:
    """The limits of all servers that were asked, by the server's address and the model's name."""

    def __init__(self) -> None:
        self._learned: dict[str, set[Limit]] = {}

    def of(self, model: str, *, server: str, is_own: bool) -> frozenset[Limit]:
        """Return the limits to keep to; every server but a provider's own is sent one system message."""
        learned = self._learned.get(server, set()) | self._learned.get(model, set())
        return frozenset(learned if is_own else {*learned, "system first"})

    def learn(self, error: str, model: str, *, server: str, known: frozenset[Limit]) -> bool:
        """Remember the limit that an error is about; return False if it is about none that was not kept to."""
        wanted = next((limits for words, limits in _SPELLED if words.search(error)), ())
        new = next((limit for limit in wanted if limit not in known), None)
        if new is None:
            return False
        self._learned.setdefault(server if new == "system first" else model, set()).add(new)
        if new != "system first":
            # A server that refuses a role refuses the order of roles, too.
            self._learned.setdefault(server, set()).add("system first")
        return True
