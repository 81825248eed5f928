"""Lists files and finds lines in them: a program of its own, because a pattern may be made to take for ever.

Reads one request as JSON and writes a JSON array a line as it goes: ``["hit", text]`` for what was found, ``["bad",
why]`` for a pattern that is none, ``["more", ""]`` where there is more than was asked for. Links are listed and never
followed.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import TextIO, TypedDict

SKIPPED_FOLDERS = frozenset({".git"})
FILE_BYTES_MAX = 5_000_000
SNIFFED_BYTES = 8_192
LINE_CHARACTERS_MAX = 300


class Request(TypedDict):
    """What is looked for; paths are real ones, ``kept_out`` those nobody looks into."""

    root: str
    folder: str
    kept_out: list[str]
    glob: str
    """Which files; empty for all of them."""
    pattern: str | None
    """What is found in them; None to list them."""
    is_regex: bool
    ignore_case: bool
    hits_max: int


def main(source: TextIO, target: TextIO) -> None:
    """Answer one request."""

    def tell(kind: str, what: str) -> None:
        target.write(json.dumps([kind, what]) + "\n")
        target.flush()

    request: Request = json.load(source)
    try:
        hits = look(request)
        for count, hit in enumerate(hits):
            if count == request["hits_max"]:
                tell("more", "")
                return
            tell("hit", hit)
    except (re.error, RecursionError, OverflowError) as error:
        tell("bad", str(error))


def look(request: Request) -> Iterator[str]:
    """Yield what is found, in the order of the paths."""
    wanted = re.compile(_glob(request["glob"])) if request["glob"] else None
    pattern = None
    if request["pattern"] is not None:
        text = request["pattern"] if request["is_regex"] else re.escape(request["pattern"])
        pattern = re.compile(text, re.IGNORECASE if request["ignore_case"] else 0)
    for path in _files(request["folder"], frozenset(request["kept_out"])):
        name = os.path.relpath(path, request["root"])
        below = os.path.relpath(path, request["folder"])
        if wanted is not None and not wanted.fullmatch(below):
            continue
        if pattern is None:
            yield name
        else:
            yield from _lines(path, name, pattern)


def _files(folder: str, kept_out: frozenset[str]) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            each
            for each in folders
            if each not in SKIPPED_FOLDERS and os.path.join(here, each) not in kept_out  # noqa: PTH118
        )
        for each in sorted(files):
            yield os.path.join(here, each)  # noqa: PTH118 - a path object for each of many would take longer


def _lines(path: str, name: str, pattern: "re.Pattern[str]") -> Iterator[str]:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if pattern.search(line):
            shown = line.rstrip("\r")
            cut = f"{shown[:LINE_CHARACTERS_MAX]} […]" if len(shown) > LINE_CHARACTERS_MAX else shown
            yield f"{name}:{number}: {cut}"


def _text(path: str) -> str:
    """Return what an ordinary text file says; nothing for any other, or one that is too large or not ours to read."""
    try:
        # Without waiting: a pipe nobody writes to would never open.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_BYTES_MAX:
            return ""
        data = file.read()
    return "" if b"\0" in data[:SNIFFED_BYTES] else data.decode("utf-8", "replace")


def _glob(glob: str) -> str:
    """Return a glob as an expression over a path; one without a slash is about the name, in whatever folder."""
    if "/" not in glob:
        glob = f"**/{glob}"
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    found = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    return "".join(pieces.get(piece, re.escape(piece)) for piece in found)


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
