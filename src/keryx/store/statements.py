"""Named SQL statements from the ``.sql`` files of the subjects.

Both databases share one text. For PostgreSQL, ``json_each(:ids)`` becomes its own function, and a statement of the same
name in ``<noun>.postgres.sql`` replaces the shared one. A sentence introduces every statement. No code assembles SQL.
A list of columns that several statements return is written once, under ``-- columns: turn``; they write ``{turn}``, or
``{t.turn}`` with the table's alias.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import itemgetter
from typing import Any, Final, Literal, TypeVar, get_args

from keryx.errors import StoreError
from keryx.values import dataclass

Row = tuple[Any, ...]
R = TypeVar("R")
"""A record: a NamedTuple or a dataclass with a field for each column."""
Dialect = Literal["sqlite", "postgres"]
Topic = Literal["turns", "deliveries"]
"""The work that a commit may make possible: a turn that can begin, a delivery that can be sent."""
TOPICS: tuple[Topic, ...] = get_args(Topic)

SQL_LAYERS: Final = ("tables", "views")
"""The layers that contain SQL if they are folders."""

_HEAD = re.compile(r"^-- name:(?P<name>.*)$", re.MULTILINE)
_COLUMNS = re.compile(r"^-- columns: (?P<name>[a-z_]+)\n(?P<list>(?:.+\n)+)", re.MULTILINE)
_USE = re.compile(r"\{(?P<alias>[a-z_]+\.)?(?P<name>[a-z_]+)\}")
_NAME = re.compile(r"[a-z_]+\.[a-z_0-9]+")
_WAKES = re.compile(r"-- wakes: (.*)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
_JSON_EACH = re.compile(r"\bjson_each\((:[a-z_]+)\)")
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
    columns: list[str] = field(default_factory=list, compare=False)
    """The names of the returned columns; the driver fills them in when the statement first returns a row."""
    makers: dict[type, Callable[..., Any]] = field(default_factory=dict, compare=False)
    """How a row becomes a record of each type that the statement was read into."""

    def maker(self, kind: type[R]) -> Callable[[Row], R]:
        """Return what makes a record of a row, by the names of the columns; raise ``StoreError`` if they differ."""
        made = self.makers.get(kind)
        if made is None:
            made = self.makers[kind] = _maker(self, kind)
        return made


def _maker(statement: Statement, kind: Any) -> Callable[[Row], Any]:
    is_tuple = issubclass(kind, tuple)
    columns, names = statement.columns, kind._fields if is_tuple else [each.name for each in fields(kind)]
    if sorted(names) != sorted(columns):
        raise StoreError(
            f"{statement.name} returns {', '.join(columns)}; {kind.__name__} has {', '.join(names)}."
        )
    if not is_tuple:
        return lambda row: kind(**dict(zip(columns, row, strict=True)))
    if list(names) == columns:
        make: Callable[[Row], Any] = kind._make
        return make
    order = itemgetter(*map(columns.index, names))
    return lambda row: kind._make(order(row))


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
    files = [(resource.name, resource.read_text(encoding="utf-8")) for resource in resources]
    columns = _column_lists(files)
    for file, text in files:
        target = special if file.endswith(".postgres.sql") else shared
        for statement in parse(_expand(text, columns, file), dialect=dialect):
            if statement.name in target:
                raise StoreError(f"{file} defines {statement.name} a second time; rename one of the two.")
            target[statement.name] = statement
    orphans = special.keys() - shared.keys()
    if orphans:
        raise StoreError(
            f"{', '.join(sorted(orphans))} override nothing: only shared names can be overridden."
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


def _column_lists(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the lists of columns of all files by name; raise ``StoreError`` if two have the same name."""
    lists: dict[str, list[str]] = {}
    for file, text in files:
        for found in _COLUMNS.finditer(text):
            if found["name"] in lists:
                raise StoreError(
                    f"{file} defines the columns {found['name']} a second time; rename one of the two."
                )
            lists[found["name"]] = " ".join(found["list"].split()).split(", ")
    return lists


def _expand(text: str, lists: Mapping[str, list[str]], file: str) -> str:

    def columns(use: re.Match[str]) -> str:
        if use["name"] not in lists:
            raise StoreError(f"{file} uses {use[0]}, but no file has a line '-- columns: {use['name']}'.")
        return ", ".join((use["alias"] or "") + column for column in lists[use["name"]])

    return _USE.sub(columns, _COLUMNS.sub("", text))


def _wakes(name: str, lines: list[str]) -> frozenset[Topic]:
    said = {topic for line in lines if (found := _WAKES.fullmatch(line)) for topic in found[1].split(", ")}
    wakes = frozenset(topic for topic in TOPICS if topic in said)
    if len(wakes) != len(said):
        raise StoreError(f"{name} wakes {', '.join(sorted(said))}: there are {' and '.join(TOPICS)}.")
    return wakes


def _for_psycopg(sql: str) -> str:
    # SQLite's table of the elements of a JSON array; on PostgreSQL, all its values are text.
    sql = _JSON_EACH.sub(r"json_array_elements_text(CAST(\1 AS json))", sql)
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
