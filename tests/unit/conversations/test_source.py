"""Sources: validation, descriptions for people, and storage."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.source import CHAT_TYPES, LOCAL_CLI, Source
from keryx.errors import InvalidValue

OPTIONAL_NAMES = (
    "chat_name",
    "user_name",
    "chat_topic",
    "message_id",
    "reply_to",
)
OPTIONAL_IDS = ("account", "user_id", "user_id_alt", "chat_id_alt")


@st.composite
def sources(draw: st.DrawFn) -> Source:
    chat_type = draw(st.sampled_from(CHAT_TYPES))
    ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)
    values: dict[str, Any] = {name: draw(st.none() | st.text(max_size=8)) for name in OPTIONAL_NAMES}
    values |= {name: draw(st.none() | ids) for name in OPTIONAL_IDS}
    values["thread_id"] = draw(ids if chat_type == "thread" else st.none() | ids)
    return Source(platform="signal", chat_id=draw(ids), chat_type=chat_type, **values)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (LOCAL_CLI, "CLI terminal"),
        (Source(platform="local", chat_id="script", chat_type="dm"), "local: script"),
        (Source(platform="telegram", chat_id="7", chat_type="dm", user_name="Ana"), "DM with Ana"),
        (Source(platform="telegram", chat_id="7", chat_type="dm", user_id="u7"), "DM with u7"),
        (Source(platform="telegram", chat_id="7", chat_type="dm"), "DM with 7"),
        (Source(platform="signal", chat_id="g", chat_type="group", chat_name="Family"), "group: Family"),
        (Source(platform="signal", chat_id="g", chat_type="group", chat_name=" \n"), "group: g"),
        (Source(platform="slack", chat_id="C1", chat_type="channel", chat_name="ops"), "channel: ops"),
        (
            Source(platform="slack", chat_id="C1", chat_type="thread", chat_name="ops", thread_id="42"),
            "channel: ops, thread: 42",
        ),
        (
            Source(platform="slack", chat_id="C1", chat_type="channel", chat_name="ops", thread_id="42"),
            "channel: ops, thread: 42",
        ),
    ],
)
def test_a_source_describes_itself_to_people(source: Source, words: str) -> None:
    assert source.describe() == words


def test_a_name_with_line_breaks_is_described_on_one_line() -> None:
    source = Source(platform="signal", chat_id="1", chat_type="dm", user_name="Ana\nadmin:\u2028 yes")
    assert source.describe() == "DM with Ana admin: yes"


def test_an_invisible_id_is_described_by_a_question_mark() -> None:
    assert Source(platform="signal", chat_id=" ", chat_type="group").describe() == "group: ?"


@settings(max_examples=100)
@given(sources())
def test_a_source_survives_to_dict_and_from_dict(source: Source) -> None:
    assert Source.from_dict(source.to_dict()) == source


def test_the_dict_contains_only_fields_that_are_set() -> None:
    assert LOCAL_CLI.to_dict() == {"platform": "local", "chat_id": "cli", "chat_type": "dm"}


def test_unknown_keys_and_nulls_of_another_version_are_ignored() -> None:
    data = {"platform": "local", "chat_id": "cli", "chat_type": "dm", "user_id": None, "mood": ["good"]}
    assert Source.from_dict(data) == LOCAL_CLI


@pytest.mark.parametrize("missing", ["platform", "chat_id", "chat_type"])
def test_a_dict_without_a_chat_is_refused(missing: str) -> None:
    data = LOCAL_CLI.to_dict()
    del data[missing]
    with pytest.raises(InvalidValue, match=f"no {missing}"):
        Source.from_dict(data)


def test_a_dict_with_a_number_for_an_id_is_refused() -> None:
    with pytest.raises(InvalidValue, match="chat_id is a int"):
        Source.from_dict({"platform": "telegram", "chat_id": 7, "chat_type": "dm"})


@pytest.mark.parametrize(
    "platform", ["", "Telegram", "a:b", "9gag", "x" * 33, "telegram\n", "person", "origin", "all"]
)
def test_an_invalid_platform_name_is_refused(platform: str) -> None:
    with pytest.raises(InvalidValue, match="platform"):
        Source(platform=platform, chat_id="1", chat_type="dm")


@pytest.mark.parametrize(
    "wrong",
    [
        {"chat_type": "forum"},
        {"chat_id": ""},
        {"account": ""},
        {"user_id": ""},
        {"thread_id": ""},
        {"chat_type": "thread"},
    ],
)
def test_an_invalid_source_is_refused_with_the_name_of_the_field(wrong: dict[str, str]) -> None:
    data: dict[str, str] = {"platform": "signal", "chat_id": "1", "chat_type": "dm"} | wrong
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Source.from_dict(data)


@pytest.mark.parametrize("wrong", ["a\x00b", "\ud800", "x\udfff"])
@pytest.mark.parametrize("name", ["chat_id", "account", "user_id", "thread_id", "user_id_alt", "chat_id_alt"])
def test_an_id_that_no_database_can_store_is_refused(name: str, wrong: str) -> None:
    fields: dict[str, str] = {"chat_id": "1", name: wrong}
    with pytest.raises(InvalidValue, match=f"{name} .* holds a NUL"):
        Source(platform="telegram", chat_type="dm", **fields)
