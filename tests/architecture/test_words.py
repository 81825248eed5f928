"""One word, one meaning: tables and public names are in the glossary, and a class name exists once."""

import re
from collections import defaultdict
from pathlib import Path

import keryx
from tests.architecture.source import PACKAGE, ROOT, modules

GLOSSARY = ROOT / "docs" / "glossary.md"
SCHEMAS = ("schema.sqlite.sql", "migrations/search.sqlite.sql")


def undefined(names: set[str], glossary: str) -> list[str]:
    """Return the names that the glossary does not explain: it writes them in backticks in the first column."""
    explained = {
        name
        for row in re.findall(r"^\|([^|]+)\|", glossary, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    return sorted(names - explained)


def tables() -> set[str]:
    """Return the names of all tables."""
    text = "".join((PACKAGE / "store" / name).read_text(encoding="utf-8") for name in SCHEMAS)
    return set(re.findall(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", text, re.MULTILINE))


def repeated_classes(package: Path) -> dict[str, list[str]]:
    """Return the class names that several modules define; test doubles and private names may repeat."""
    found = defaultdict(list)
    for module in modules(package):
        if module.name.startswith("testing/"):
            continue
        for name in re.findall(r"^class ([A-Za-z]\w*)", module.text, re.MULTILINE):
            found[name].append(module.name)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_the_glossary_explains_every_table() -> None:
    assert "sessions" in tables()
    assert "search_segments" in tables()
    assert undefined(tables(), GLOSSARY.read_text(encoding="utf-8")) == []


def test_the_glossary_explains_every_public_name() -> None:
    public = {name for name in keryx.__all__ if not name.startswith("_")}
    assert undefined(public, GLOSSARY.read_text(encoding="utf-8")) == []


def test_a_name_that_the_glossary_misses_is_found() -> None:
    assert undefined({"feed", "fires"}, "| `feed` | an event, like `fires` |\n") == ["fires"]


def test_a_class_name_exists_once() -> None:
    assert repeated_classes(PACKAGE) == {}


def test_a_class_name_that_exists_twice_is_found(tmp_path: Path) -> None:
    (tmp_path / "testing").mkdir()
    for name in ("a.py", "b.py", "testing/c.py"):
        (tmp_path / name).write_text("class Place: ...\n\n\nclass _Private: ...\n")
    assert repeated_classes(tmp_path) == {"Place": ["a.py", "b.py"]}
