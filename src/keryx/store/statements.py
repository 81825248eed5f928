"""Named SQL statements from the ``.sql`` files of the subjects.

Both databases share one text; for PostgreSQL, a statement with the same name in ``<noun>.postgres.sql`` replaces
it. A sentence introduces every statement. No code assembles SQL from strings.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, Literal, get_args

from keryx.errors import StoreError
from keryx.values import dataclass

Dialect = Literal["sqlite", "postgres"]
Topic = Literal["turns", "deliveries"]
"""The work that a commit may make possible: a turn that can begin, a delivery that can be sent."""
TOPICS: tuple[Topic, ...] = get_args(Topic)

SQL_LAYERS: Final = ("tables", "views")
"""The layers that contain SQL if they are folders."""

_HEAD = re.compile(r"^-- name:(?P<name>.*)$", re.MULTILINE)
_NAME = re.compile(r"[a-z_]+\.[a-z_0-9]+")
_WAKES = re.compile(r"-- wakes: (.*)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
GIVEN_BY_STORE = frozenset({"now", "lease_now", "boot_id"})
"""Parameters that the transaction binds itself, so that no caller can pass its own clock."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement, ready for the driver of its dialect."""

    name: str
    doc: str
    sql: str
    params: frozenset[str]
    given: tuple[str, ...]
    wakes: frozenset[Topic] = frozenset()
    """The topics that may have work after this statement changed rows, from the line ``-- wakes:``."""


@cache
def load(dialect: Dialect) -> dict[str, Statement]:
    """Return all statements by name, in the form that the dialect's driver needs."""
    return read(sql_files(files("keryx.core")), dialect=dialect)


def sql_files(core: Traversable) -> Iterator[Traversable]:
    """Yield the ``.sql`` files of every subject in ``core``, for its tables and its views."""
    for subject in sorted((item for item in core.iterdir() if item.is_dir()), key=lambda item: item.name):
        for place in (subject, *(subject.joinpath(layer) for layer in SQL_LAYERS)):
            if place.is_dir():
                yield from sorted(
                    (item for item in place.iterdir() if item.name.endswith(".sql")),
                    key=lambda item: item.name,
                )


def read(resources: Iterable[Traversable], *, dialect: Dialect) -> dict[str, Statement]:
    """Return the statements of the ``.sql`` files by name; raise ``StoreError`` if two have the same name."""
    shared: dict[str, Statement] = {}
    special: dict[str, Statement] = {}
    for resource in resources:
        target = special if resource.name.endswith(".postgres.sql") else shared
        for statement in parse(resource.read_text(encoding="utf-8"), dialect=dialect):
            if statement.name in target:
                raise StoreError(
                    f"{resource.name} defines {statement.name} a second time; rename one of the two."
                )
            target[statement.name] = statement
    strays = special.keys() - shared.keys()
    if strays:
        raise StoreError(
            f"{', '.join(sorted(strays))} override nothing: only shared names can be overridden."
        )
    return shared | special if dialect == "postgres" else shared


def parse(text: str, *, dialect: Dialect) -> Iterator[Statement]:
    """Yield the statements of one file; raise ``StoreError`` for an invalid name."""
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        name = head["name"].strip()
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is not a valid name for a statement: write noun.verb in lower case.")
        block = text[head.end() : following.start() if following else len(text)].strip()
        lines = block.splitlines()
        doc_lines = [line for line in lines if line.startswith("--") and not _WAKES.fullmatch(line)]
        sql = "\n".join(line for line in lines if not line.startswith("--")).strip()
        params = frozenset(_PARAMETER.findall(sql))
        yield Statement(
            name=name,
            doc=" ".join(line.removeprefix("--").strip() for line in doc_lines),
            sql=_for_psycopg(sql) if dialect == "postgres" else sql,
            params=params,
            given=tuple(sorted(params & GIVEN_BY_STORE)),
            wakes=_wakes(name, lines),
        )


def _wakes(name: str, lines: list[str]) -> frozenset[Topic]:
    said = {topic for line in lines if (found := _WAKES.fullmatch(line)) for topic in found[1].split(", ")}
    wakes = frozenset(topic for topic in TOPICS if topic in said)
    if len(wakes) != len(said):
        raise StoreError(f"{name} wakes {', '.join(sorted(said))}: there are {' and '.join(TOPICS)}.")
    return wakes


def _for_psycopg(sql: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
