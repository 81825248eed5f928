"""Read-only commands: the beginnings that a standing approval may cover with any further words.

A command is listed only if its words cannot run another program, write, delete or leave its folder. An unknown
program counts as harmful: read its manual for such options before you add it.
"""

import re
from typing import Final

# fmt: off
_READ_ONLY: Final = frozenset(
    {
        "basename", "cat", "cmp", "cut", "df", "diff", "dirname", "du", "echo", "egrep", "fgrep", "grep", "head", "id",
        "ls", "nl", "pwd", "readlink", "realpath", "stat", "tac", "tail", "uname", "wc", "which", "whoami",
    }
)
"""Left out on purpose: ``find`` (-delete, -exec), ``sort`` and ``tree`` (-o), ``uniq`` (writes its second argument),
``awk`` and ``sed`` (run programs), ``date`` and ``hostname`` (can set what they show), ``file`` (-C writes), ``rg``
(--pre runs a program), ``ps`` (shows the environment of other processes)."""
_READ_ONLY_GIT: Final = frozenset(
    {
        "blame", "cat-file", "describe", "diff", "log", "ls-files", "ls-tree", "rev-parse", "shortlog", "show",
        "status",
    }
)
# fmt: on
"""Left out on purpose: ``branch``, ``tag``, ``remote``, ``stash``, ``config`` (change), ``grep`` (-O runs a pager)."""
_RISKY_GIT: Final = ("--ext-diff", "--filters", "--output", "--textconv")
"""These options write a file, or run a configured program; git also accepts any prefix of them."""
_WORDS: Final = re.compile(r"[\w./:=@%+,\- ]+", re.ASCII)
"""Only characters that have no special meaning for a shell."""
_OUTSIDE_PATH: Final = re.compile(r"/.*|-.*/.*|(?:.*[/:=])?\.\.(?:/.*)?")


def harmless_beginning(command: str) -> str | None:
    """Return the beginning, with a star, of a command that only reads files in its folder; else None."""
    program, *words = command.split(" ")
    if _WORDS.fullmatch(command) is None or any(map(_OUTSIDE_PATH.fullmatch, words)):
        return None
    if program in _READ_ONLY:
        return f"{program} *"
    if program == "git" and words and words[0] in _READ_ONLY_GIT and not any(map(_is_risky_git, words)):
        return f"git {words[0]} *"
    return None


def _is_risky_git(word: str) -> bool:
    name = word.partition("=")[0]
    return len(name) > len("--") and any(option.startswith(name) for option in _RISKY_GIT)
