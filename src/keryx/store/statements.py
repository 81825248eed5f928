"""Named SQL, read from the ``.sql`` files beside the table modules.

One text serves both databases; a statement of the same name in ``<noun>.postgres.sql`` replaces it there. Every
statement is introduced by a sentence, and nothing here or elsewhere assembles SQL from strings.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, get_args

from keryx.errors import StoreError
from keryx.values import dataclass

Dialect = Literal["sqlite", "postgres"]
Topic = Literal["turns", "deliveries"]
"""What there may be to do after a commit: a turn that can begin, something that can be sent."""
TOPICS: tuple[Topic, ...] = get_args(Topic)

_HEAD = re.compile(r"^-- name:(?P<name>.*)$", re.MULTILINE)
_NAME = re.compile(r"[a-z_]+\.[a-z_0-9]+")
_WAKES = re.compile(r"-- wakes: (.*)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
GIVEN_BY_STORE = frozenset({"now", "lease_now", "boot_id"})
"""Parameters that the transaction itself binds, so that no caller's clock can slip in."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement, ready for the driver of its dialect."""

    name: str
    doc: str
    sql: str
    params: frozenset[str]
    given: tuple[str, ...]
    wakes: frozenset[Topic] = frozenset()
    """Who may find something to do once rows were changed by it: the line ``-- wakes:`` says so."""


@cache
def load(dialect: Dialect) -> dict[str, Statement]:
    """Return every statement of the store by name, as this dialect's driver wants it."""
    return read(files("keryx.store.tables"), dialect=dialect)


def read(folder: Traversable, *, dialect: Dialect) -> dict[str, Statement]:
    """Return the statements of the ``.sql`` files in ``folder`` by name; raises ``StoreError`` where two collide."""
    shared: dict[str, Statement] = {}
    special: dict[str, Statement] = {}
    for resource in sorted(folder.iterdir(), key=lambda item: item.name):
        if not resource.name.endswith(".sql"):
            continue
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
    """Yield the statements of one file; raises ``StoreError`` for a name that is none."""
    heads = list(_HEAD.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        name = head["name"].strip()
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is not a statement's name: write noun.verb in small letters.")
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
