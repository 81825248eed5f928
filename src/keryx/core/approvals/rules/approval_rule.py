"""What a standing approval covers: every use of a tool, or the uses that match a pattern.

A pattern is a promise to the person who reads it. It is accepted only if it matches the call itself and the call
cannot do more than the pattern says. Any other call can be approved once only, and no pattern covers it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from keryx.values import dataclass

WHOLE_TOOL: Final = "*"
"""The pattern for every use of a tool."""
PATTERN_MAX: Final = 200
"""A longer pattern is refused: a person would not read it."""

# Plain words and a star. "=" is excluded: "A=1 *" would match any program.
_PREFIX: Final = re.compile(r"[A-Za-z0-9_./:@%+,~-]+(?: [A-Za-z0-9_./:@%+,~-]+)* ?\*")
# With these characters a shell does more than run one program; "!" turns an option into a git alias.
_SHELL: Final = frozenset(";&|<>()$`\\!")
# Programs that run another program: a pattern that begins with one of them names no program.
_RUNNER: Final = re.compile(
    r"(?:\S*/)?(?:\.|(?:a|ba|c|da|fi|k|tc|z)?sh|builtin|busybox|chroot|command|doas|env|eval|exec|ionice|nice|nohup"
    r"|parallel|setsid|source|stdbuf|su|sudo|time|timeout|watch|xargs)[ *].*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """A person's standing approval: everywhere, or only in a session."""

    id: int
    tool: str
    pattern: str
    session_id: str | None = None

    def covers(self, call: "CallToApprove") -> bool:
        """Return whether this rule allows the call without a question."""
        return self.tool == call.tool and self.pattern in (WHOLE_TOOL, call.covers)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallToApprove:
    """A call that needs approval; ``covers`` is what a standing approval would cover, None if none is possible."""

    call_id: str
    tool: str
    question: str
    covers: str | None


def coverage(pattern: str | None, texts: Iterable[str]) -> str | None:
    """Return the pattern of a standing approval for a call, or None if the call can be approved once only.

    ``pattern`` comes from the tool, None for the whole tool; ``texts`` are all texts in the call's arguments. A
    pattern that ends with a star must be the beginning of one text, any other pattern must equal one text.
    """
    if pattern is None:
        return WHOLE_TOOL
    stripped = [text.strip() for text in texts]
    is_accepted = _is_prefix(pattern, stripped) if "*" in pattern else pattern in stripped
    return (
        pattern if is_accepted and all(map(is_plain, stripped)) and 0 < len(pattern) <= PATTERN_MAX else None
    )


def is_plain(text: str) -> bool:
    """Return whether a shell would read a text as one single command, and all of it is visible to people."""
    return text.isprintable() and not _SHELL & set(text)


def describe_coverage(tool: str, covers: str) -> str:
    """Return the coverage of a standing approval in words."""
    return f"every use of {tool}" if covers == WHOLE_TOOL else f"{tool}: {covers}"


def _is_prefix(pattern: str, stripped: Sequence[str]) -> bool:
    if _PREFIX.fullmatch(pattern) is None or _RUNNER.fullmatch(pattern) is not None:
        return False
    stem = pattern.removesuffix("*")
    # "git *" also matches "git" alone; "git*" would also match "gitk", as a reader expects.
    return any(text == stem.rstrip() or text.startswith(stem) for text in stripped)
