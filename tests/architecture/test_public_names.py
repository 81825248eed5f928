"""The names that ``keryx`` exports are exactly those of its stub and of ``docs/reference/library.md``."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import keryx
from keryx import errors
from tests.architecture.public_names import (
    differences,
    documented,
    documented_calls,
    offered,
    offered_calls,
    stubbed,
    unexported,
)
from tests.architecture.source import PACKAGE, ROOT

REFERENCE = (ROOT / "docs" / "reference" / "library.md").read_text(encoding="utf-8")


def test_every_public_name_and_member_is_documented_and_every_documented_one_exists() -> None:
    assert differences(offered=offered(), documented=documented(REFERENCE)) == []


def test_every_call_is_documented_with_its_parameters() -> None:
    assert differences(offered=offered_calls(), documented=documented_calls(REFERENCE)) == []


@pytest.mark.parametrize(
    ("was", "planted", "found"),
    [
        ("| `Appended` | `seq`, `message_id` |\n", "", "Appended is not documented"),
        ("| `Appended` |", "| `Stored` |", "Stored is documented and does not exist"),
        ("| `seq`, `message_id` |", "| `seq` |", "Appended.message_id is not documented"),
        (
            "| `TextPart` | `text` |",
            "| `TextPart` | `words` |",
            "TextPart.words is documented and does not exist",
        ),
        (
            "| `untag(session_id, tag)` |",
            "| `remove(session_id, tag)` |",
            "KeryxSync.untag is not documented",
        ),
        ("person=None", "owner=None", "open.owner is documented and does not exist"),
    ],
)
def test_a_difference_between_the_names_and_the_reference_is_found(
    was: str, planted: str, found: str
) -> None:
    changed = REFERENCE.replace(was, planted)
    assert changed != REFERENCE
    assert found in differences(offered=offered(), documented=documented(changed))


def test_a_name_that_is_exported_and_not_documented_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keryx, "__all__", [*keryx.__all__, "planted"])
    monkeypatch.setattr(keryx, "planted", Path, raising=False)
    assert differences(offered=offered(), documented=documented(REFERENCE)) == ["planted is not documented"]


def test_a_parameter_that_is_not_documented_is_found() -> None:
    changed = REFERENCE.replace("`undo(session_id, *, turns=1)`", "`undo(session_id)`")
    found = differences(offered=offered_calls(), documented=documented_calls(changed))
    assert found == ["undo.turns is not documented"]


def test_type_checkers_see_the_names_that_are_imported() -> None:
    stub = stubbed((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    assert stub.pop("__version__") == ""
    assert {"__version__", *stub} == set(keryx.__all__)
    homes = {name: import_module(module) for name, module in stub.items()}
    assert [name for name, home in homes.items() if getattr(home, name) is not getattr(keryx, name)] == []


def test_every_class_that_a_call_takes_or_returns_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [each for name, each in vars(keryx.Keryx).items() if inspect.isfunction(each) and name[0] != "_"]
    assert unexported([*calls, keryx.open, keryx.open_sync]) == set()
    monkeypatch.setattr(keryx, "__all__", [name for name in keryx.__all__ if name != "Appended"])
    assert unexported(calls) == {"Appended"}


def test_the_names_are_shown() -> None:
    assert dir(keryx) == sorted(keryx.__all__)


def test_every_error_of_the_tree_is_public() -> None:
    tree = {
        name for name, each in vars(errors).items() if inspect.isclass(each) and issubclass(each, Exception)
    }
    assert tree <= set(keryx.__all__)
