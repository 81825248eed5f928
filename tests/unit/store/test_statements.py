"""Named SQL: the format of a file, and the statements for each dialect."""

from pathlib import Path

import pytest

from keryx.errors import StoreError
from keryx.store.statements import load, parse, read

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
