"""Commands: parsing, ordinary text, and suggestions for unknown commands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.commands.table import COMMANDS
from keryx.core.conversations.rules.command import ParsedCommand, UnknownCommand
from keryx.core.conversations.transactions.branch_commands import parse_turns
from keryx.errors import InvalidValue

PRODUCT = (
    "new resume sessions search title retry undo redo fork compress pin stop status usage why model personality "
    "platforms sethome schedule processes approve deny attach detach link pair memory project help"
)


def test_the_table_holds_every_command_once() -> None:
    assert [command.name for command in COMMANDS.commands] == PRODUCT.split()
    names = [name for command in COMMANDS.commands for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    assert all(command.help.endswith(".") for command in COMMANDS.commands)


@pytest.mark.parametrize(
    ("text", "name", "arguments", "addressee"),
    [
        ("/new", "new", "", None),
        ("/reset", "new", "", None),
        ("/New", "new", "", None),
        ("  /undo 2 ", "undo", "2", None),
        ("/title Trip\nto Rome", "title", "Trip\nto Rome", None),
        ("/search C++ /usr/bin", "search", "C++ /usr/bin", None),
        ("/new@my_bot", "new", "", "my_bot"),
        ("/resume@my_bot 3", "resume", "3", "my_bot"),
        ("/help\n", "help", "", None),
    ],
)
def test_a_command_is_read_with_its_arguments(
    text: str, name: str, arguments: str, addressee: str | None
) -> None:
    parsed = COMMANDS.parse(text)
    assert isinstance(parsed, ParsedCommand)
    assert (parsed.name, parsed.arguments, parsed.addressee) == (name, arguments, addressee)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "/",
        "//",
        "//new",
        "/ new",
        "/usr/bin/env",
        "/path/like/this here",
        "/2",
        "/new/x",
        "/neu!",
        "a /new",
    ],
)
def test_paths_and_double_slashes_are_ordinary_text(text: str) -> None:
    assert COMMANDS.parse(text) is None


@pytest.mark.parametrize(
    ("text", "name", "nearest"),
    [("/sesions", "sessions", "sessions"), ("/sess now", "sess", "sessions"), ("/nwe", "new", "new")],
)
def test_an_unknown_command_suggests_the_nearest(text: str, name: str, nearest: str) -> None:
    parsed = COMMANDS.parse(text)
    assert isinstance(parsed, UnknownCommand)
    assert parsed.nearest[0] == nearest
    assert f"Did you mean /{nearest}" in parsed.reply
    assert len(parsed.nearest) <= 3


def test_an_unknown_command_without_a_near_name_points_to_help() -> None:
    parsed = COMMANDS.parse("/xyzzy@my_bot")
    assert parsed == UnknownCommand(name="xyzzy", nearest=(), addressee="my_bot")
    assert isinstance(parsed, UnknownCommand)
    assert parsed.reply == "There is no command /xyzzy. /help lists them."


def test_names_with_the_same_beginning_come_first() -> None:
    assert COMMANDS.nearest("pro") == ("processes", "project", "approve")
    assert COMMANDS.nearest("p") == ("pin", "personality", "platforms")


def test_a_command_is_found_by_name_alias_and_slash() -> None:
    assert COMMANDS.find("/RESET") == COMMANDS.find("new") == COMMANDS.commands[0]
    assert COMMANDS.find("nothing") is None


def test_usage_shows_the_arguments() -> None:
    assert [command.usage for command in COMMANDS.commands[:2]] == ["/new", "/resume [name or number]"]


@pytest.mark.parametrize(("arguments", "turns"), [("", 1), ("1", 1), ("12", 12), ("100", 100)])
def test_undo_takes_a_number_of_turns(arguments: str, turns: int) -> None:
    assert parse_turns(arguments) == turns


@pytest.mark.parametrize("arguments", ["0", "101", "-1", "two", "1.5", "²", "9" * 5000])
def test_undo_refuses_anything_else(arguments: str) -> None:
    with pytest.raises(InvalidValue, match="from 1 to 100"):
        parse_turns(arguments)


@given(st.text(max_size=30) | st.from_regex(r"/[a-z@/ ]{0,12}", fullmatch=True))
@settings(max_examples=100)
def test_only_text_with_a_leading_slash_is_ever_a_command(text: str) -> None:
    if COMMANDS.parse(text) is not None:
        assert text.lstrip().startswith("/")
        assert not text.lstrip().startswith("//")
