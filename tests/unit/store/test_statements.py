"""Named SQL: the format of a file, and the statements for each dialect."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from keryx.clock import Micros
from keryx.errors import StoreError
from keryx.store.statements import Statement, load, parse, read

SHARED = """\
-- name: things.find
-- One thing
-- by its id.
SELECT '100%', a::b FROM things
-- a remark in between
WHERE id = :id AND since_at <= :now

-- name: things.add
-- A thing.
INSERT INTO things (id) VALUES (:id)
"""


def test_a_statement_has_a_name_a_sentence_parameters_and_its_sql() -> None:
    find, add = parse(SHARED, dialect="sqlite")
    assert (find.name, add.name) == ("things.find", "things.add")
    assert find.doc == "One thing by its id. a remark in between"
    assert find.sql == "SELECT '100%', a::b FROM things\nWHERE id = :id AND since_at <= :now"
    assert find.params == {"id", "now"}
    assert (find.given, add.given) == (("now",), ())


def test_psycopg_gets_its_own_placeholders_and_escaped_percent_signs() -> None:
    find, _ = parse(SHARED, dialect="postgres")
    assert find.sql == "SELECT '100%%', a::b FROM things\nWHERE id = %(id)s AND since_at <= %(now)s"


def test_a_statement_wakes_only_the_topics_that_it_names() -> None:
    [add] = parse("-- name: things.add\n-- wakes: deliveries, turns\n-- A thing.\nSELECT 1", dialect="sqlite")
    assert (sorted(add.wakes), add.doc) == (["deliveries", "turns"], "A thing.")
    with pytest.raises(StoreError, match=r"things\.add wakes neighbours: there are turns and deliveries"):
        list(parse("-- name: things.add\n-- wakes: neighbours\n-- A thing.\nSELECT 1", dialect="sqlite"))


def test_both_dialects_wake_the_same() -> None:
    on_postgres = load("postgres")
    assert {name: each.wakes for name, each in load("sqlite").items()} == {
        name: each.wakes for name, each in on_postgres.items()
    }


@pytest.mark.parametrize("name", ["Things.find", "things", "things.find it", ""])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(StoreError, match=r"write noun\.verb"):
        list(parse(f"-- name: {name}\n-- Doc.\nSELECT 1", dialect="sqlite"))


def test_an_override_replaces_only_its_statement_and_only_on_postgres(tmp_path: Path) -> None:
    (tmp_path / "things.sql").write_text(SHARED)
    (tmp_path / "things.postgres.sql").write_text("-- name: things.add\n-- Otherwise.\nSELECT 1")
    (tmp_path / "things.py").write_text("")
    assert read(sorted(tmp_path.glob("*.sql")), dialect="sqlite")["things.add"].doc == "A thing."
    on_postgres = read(sorted(tmp_path.glob("*.sql")), dialect="postgres")
    assert on_postgres["things.add"].doc == "Otherwise."
    assert on_postgres["things.find"].doc.startswith("One thing")


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(SHARED)
    (tmp_path / "b.sql").write_text(SHARED)
    with pytest.raises(StoreError, match=r"b\.sql defines things\.find a second time"):
        read(sorted(tmp_path.glob("*.sql")), dialect="sqlite")


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_an_override_without_a_shared_statement_is_refused(tmp_path: Path, dialect: str) -> None:
    (tmp_path / "things.postgres.sql").write_text("-- name: things.lost\n-- Nothing.\nSELECT 1")
    with pytest.raises(StoreError, match=r"things\.lost override nothing"):
        read(sorted(tmp_path.glob("*.sql")), dialect=dialect)  # type: ignore[arg-type]


def test_both_databases_know_the_same_statements() -> None:
    assert load("sqlite").keys() == load("postgres").keys()


COLUMNS = """\
-- columns: thing
id, name AS label,
since_at

-- name: things.find
-- A thing.
SELECT {t.thing} FROM things t WHERE t.id = :id

-- columns: place
id, at

-- name: things.places
-- Places.
SELECT {place} FROM places
"""


def test_a_named_list_of_columns_is_put_in_with_the_alias_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- name: others.list\n-- All.\nSELECT {thing} FROM things")
    (tmp_path / "b.sql").write_text(COLUMNS)
    found = read(sorted(tmp_path.glob("*.sql")), dialect="sqlite")
    assert found["others.list"].sql == "SELECT id, name AS label, since_at FROM things"
    assert (
        found["things.find"].sql == "SELECT t.id, t.name AS label, t.since_at FROM things t WHERE t.id = :id"
    )
    assert found["things.places"].sql == "SELECT id, at FROM places"


def test_a_list_of_columns_that_no_file_names_or_two_files_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- name: things.list\n-- All.\nSELECT {things} FROM things")
    with pytest.raises(
        StoreError, match=r"a\.sql uses \{things\}, but no file has a line '-- columns: things'"
    ):
        read(sorted(tmp_path.glob("*.sql")), dialect="sqlite")
    (tmp_path / "a.sql").write_text(COLUMNS)
    (tmp_path / "b.sql").write_text(COLUMNS)
    with pytest.raises(StoreError, match=r"b\.sql defines the columns thing a second time"):
        read(sorted(tmp_path.glob("*.sql")), dialect="sqlite")


class Thing(NamedTuple):
    id: int
    since_at: Micros


@dataclass
class ThingValue:
    since_at: Micros
    id: int


def returning(*columns: str) -> Statement:
    [statement] = parse(SHARED.partition("\n\n")[0], dialect="sqlite")
    statement.columns[:] = columns
    return statement


@pytest.mark.parametrize(("columns", "row"), [(("id", "since_at"), (1, 9)), (("since_at", "id"), (9, 1))])
def test_a_record_is_filled_by_the_names_of_the_columns(
    columns: tuple[str, ...], row: tuple[int, ...]
) -> None:
    assert returning(*columns).maker(Thing)(row) == Thing(id=1, since_at=9)
    assert returning(*columns).maker(ThingValue)(row) == ThingValue(id=1, since_at=9)


@pytest.mark.parametrize("columns", [("id",), ("id", "since_at", "name"), ("id", "name")])
def test_columns_that_are_not_the_fields_of_the_record_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(StoreError, match=r"things\.find returns id.*; Thing has id, since_at\."):
        returning(*columns).maker(Thing)
