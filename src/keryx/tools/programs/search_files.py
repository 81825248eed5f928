"""List files and find lines in them. This is a program of its own, because a pattern can be made to run for ever.

The program reads one request as JSON and writes one JSON array per line: ``["hit", text]`` for a hit, ``["bad", why]``
for a pattern that is not valid, ``["more", ""]`` if there are more hits than requested. Links are listed but never
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


class SearchRequest(TypedDict):
    """What to search for; all paths are resolved, and the folders in ``kept_out`` are skipped."""

    root: str
    folder: str
    kept_out: list[str]
    glob: str
    """The files to search; empty for all of them."""
    pattern: str | None
    """The pattern of the lines; None to list the files."""
    is_regex: bool
    ignore_case: bool
    hits_max: int


def main(source: TextIO, target: TextIO) -> None:
    """Answer one request."""

    def write(kind: str, text: str) -> None:
        target.write(json.dumps([kind, text]) + "\n")
        target.flush()

    request: SearchRequest = json.load(source)
    try:
        for count, hit in enumerate(search_files(request)):
            if count == request["hits_max"]:
                write("more", "")
                return
            write("hit", hit)
    except (re.error, RecursionError, OverflowError) as error:
        write("bad", str(error))


def search_files(request: SearchRequest) -> Iterator[str]:
    """Yield the hits, in the order of the paths."""
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
            yield os.path.join(here, each)  # noqa: PTH118 - a path object for each of many files takes longer


def _lines(path: str, name: str, pattern: "re.Pattern[str]") -> Iterator[str]:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if pattern.search(line):
            shown = line.rstrip("\r")
            cut = f"{shown[:LINE_CHARACTERS_MAX]} […]" if len(shown) > LINE_CHARACTERS_MAX else shown
            yield f"{name}:{number}: {cut}"


def _text(path: str) -> str:
    """Return the text of an ordinary file; empty if it is something else, too large, binary or not readable."""
    try:
        # Without blocking: a pipe that no program writes to would never open.
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
    """Return a glob as a regular expression over a path; a glob without a slash is about the name, in any folder."""
    if "/" not in glob:
        glob = f"**/{glob}"
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    found = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    return "".join(pieces.get(piece, re.escape(piece)) for piece in found)


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
