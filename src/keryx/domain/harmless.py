"""Which commands only look: the beginnings that a lasting yes may cover with whatever words follow.

Nothing is here whose words can run another program, write, delete or leave the folder it works in. What is not known to
be harmless is not: a program is added after its manual was read for such options.
"""

import re
from typing import Final

# fmt: off
_LOOKING: Final = frozenset(
    {
        "basename", "cat", "cmp", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "fgrep", "grep", "head", "id",
        "ls", "nl", "pwd", "readlink", "realpath", "stat", "tac", "tail", "uname", "wc", "which", "whoami",
    }
)
# fmt: on
"""Missed on purpose: ``find`` (-delete, -exec), ``sort`` and ``tree`` (-o), ``uniq`` (its second word is written),
``awk`` and ``sed`` (programs themselves), ``date`` and ``hostname`` (set what they tell), ``file`` (-C writes), ``rg``
(--pre runs), ``ps`` (tells what stands in the environment of others)."""
_LOOKING_GIT: Final = frozenset(
    {
        "blame",
        "cat-file",
        "describe",
        "diff",
        "log",
        "ls-files",
        "ls-tree",
        "rev-parse",
        "shortlog",
        "show",
        "status",
    }
)
"""Missed on purpose: ``branch``, ``tag``, ``remote``, ``stash``, ``config`` (change), ``grep`` (-O runs a pager)."""
_RISKY_GIT: Final = ("--ext-diff", "--filters", "--output", "--textconv")
"""These write a file, or run what a configuration names; git takes any beginning of them, too."""
_WORDS: Final = re.compile(r"[\w./:=@%+,\- ]+", re.ASCII)
"""Nothing in it means more to a shell than a word."""
_LEADS_OUT: Final = re.compile(r"/.*|-.*/.*|(?:.*[/:=])?\.\.(?:/.*)?")


def harmless_beginning(command: str) -> str | None:
    """Return the beginning, with a star, of a command that only looks at what lies in its folder; else None."""
    program, *words = command.split(" ")
    if _WORDS.fullmatch(command) is None or any(map(_LEADS_OUT.fullmatch, words)):
        return None
    if program in _LOOKING:
        return f"{program} *"
    if program == "git" and words and words[0] in _LOOKING_GIT and not any(map(_is_risky_git, words)):
        return f"git {words[0]} *"
    return None


def _is_risky_git(word: str) -> bool:
    name = word.partition("=")[0]
    return len(name) > len("--") and any(option.startswith(name) for option in _RISKY_GIT)
