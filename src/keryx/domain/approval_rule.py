"""How far a lasting yes reaches: for every use of a tool, or for those that a pattern names.

A pattern is a promise to the person who reads it. It is believed only where it is true of the call itself and nothing
in the call could make more of it than it says; any other call can be allowed for once, and no pattern covers it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from keryx.values import dataclass

WHOLE_TOOL: Final = "*"
"""The pattern that covers every use of a tool."""
PATTERN_MAX: Final = 200
"""More characters than a person reads in a question are promised by none."""

# Plain words and a star. An "=" is no part of them: in "A=1 *" the program would be anything.
_BEGINNING: Final = re.compile(r"[A-Za-z0-9_./:@%+,~-]+(?: [A-Za-z0-9_./:@%+,~-]+)* ?\*")
# With these a shell does more than to run one program; "!" makes a git alias out of an option.
_SHELL: Final = frozenset(";&|<>()$`\\!")
# Whose work is to run another program: a beginning with one of them names nothing.
_RUNNER: Final = re.compile(
    r"(?:\S*/)?(?:\.|(?:a|ba|c|da|fi|k|tc|z)?sh|builtin|busybox|chroot|command|doas|env|eval|exec|ionice|nice|nohup"
    r"|parallel|setsid|source|stdbuf|su|sudo|time|timeout|watch|xargs)[ *].*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """A lasting yes of a person: everywhere, or with a session only there."""

    id: int
    tool: str
    pattern: str
    session_id: str | None = None

    def covers(self, wish: "Wish") -> bool:
        """Say whether a call may be made without asking."""
        return self.tool == wish.tool and self.pattern in (WHOLE_TOOL, wish.covers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A call that needs a person's word; ``covers`` is what a lasting yes to it reaches, None where none may."""

    call_id: str
    tool: str
    question: str
    covers: str | None


def coverage(pattern: str | None, texts: Iterable[str]) -> str | None:
    """Return what a lasting yes to a call covers, or None where it can be allowed only for once.

    ``pattern`` is what the tool names, None for the whole tool, and ``texts`` are all texts it was called with: a
    pattern that ends with a star is how one of them begins, any other is one of them.
    """
    if pattern is None:
        return WHOLE_TOOL
    said = [text.strip() for text in texts]
    is_believed = _is_beginning(pattern, said) if "*" in pattern else pattern in said
    return pattern if is_believed and all(map(is_plain, said)) and 0 < len(pattern) <= PATTERN_MAX else None


def is_plain(text: str) -> bool:
    """Say whether a shell would take a text as one command and nothing else, and a person see all of it."""
    return text.isprintable() and not _SHELL & set(text)


def describe_coverage(tool: str, covers: str) -> str:
    """Return in words what a lasting yes reaches."""
    return f"every use of {tool}" if covers == WHOLE_TOOL else f"{tool}: {covers}"


def _is_beginning(pattern: str, said: Sequence[str]) -> bool:
    if _BEGINNING.fullmatch(pattern) is None or _RUNNER.fullmatch(pattern) is not None:
        return False
    stem = pattern.removesuffix("*")
    # "git *" is also "git" alone; "git*" would be "gitk" too, and says so.
    return any(text == stem.rstrip() or text.startswith(stem) for text in said)
