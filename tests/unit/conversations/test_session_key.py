"""Session keys: their text forms, and that no two conversations share a key."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.session_key import (
    DmScope,
    GroupScope,
    ScopeSettings,
    ThreadScope,
    escape_part,
    key_for,
    unescape_part,
)
from keryx.core.conversations.rules.source import CHAT_TYPES, LOCAL_CLI, Source
from keryx.errors import InvalidValue

# Few letters and all special characters, so that the test finds collisions by spelling.
SPELLINGS = st.text(alphabet="a:@%3A", min_size=1, max_size=4)
SCOPES = st.builds(
    ScopeSettings,
    dm=st.sampled_from(get_args(DmScope)),
    group=st.sampled_from(get_args(GroupScope)),
    thread=st.sampled_from(get_args(ThreadScope)),
)


@st.composite
def sources(draw: st.DrawFn) -> Source:
    chat_type = draw(st.sampled_from(CHAT_TYPES))
    return Source(
        platform=draw(st.sampled_from(["slack", "matrix"])),
        account=draw(st.none() | SPELLINGS),
        chat_id=draw(SPELLINGS),
        chat_type=chat_type,
        thread_id=draw(SPELLINGS if chat_type == "thread" else st.none() | SPELLINGS),
        user_id=draw(st.none() | SPELLINGS),
        chat_name=draw(st.none() | st.text(max_size=3)),
    )


def what_matters(
    source: Source, scope: ScopeSettings, person_id: int | None, first: str | None
) -> tuple[object, ...]:
    """Return the fields by which the scope separates conversations, as product §2 lists them."""
    surface = (source.platform, None if source.account == first else source.account, source.chat_type)
    match source.chat_type:
        case "dm" if scope.dm == "person" and person_id is not None:
            return ("person", person_id)
        case "dm" if scope.dm == "platform":
            return surface
        case "dm":
            return (*surface, source.chat_id)
        case "thread":
            user = source.user_id if scope.thread == "user" else None
            return (*surface, source.chat_id, source.thread_id, user)
        case _:
            return (*surface, source.chat_id, source.user_id if scope.group == "user" else None)


def source(chat_type: str = "dm", **values: Any) -> Source:
    return Source.from_dict({"platform": "telegram", "chat_id": "-100", "chat_type": chat_type, **values})


@pytest.mark.parametrize(
    ("where", "scope", "key"),
    [
        (LOCAL_CLI, ScopeSettings(), "agent:main:local:dm:cli"),
        (source(), ScopeSettings(), "agent:main:telegram:dm:-100"),
        (source(), ScopeSettings(dm="platform"), "agent:main:telegram:dm"),
        (source(), ScopeSettings(dm="person"), "agent:main:person:3"),
        (source("group", user_id="7"), ScopeSettings(), "agent:main:telegram:group:-100"),
        (source("group", user_id="7"), ScopeSettings(group="user"), "agent:main:telegram:group:-100:7"),
        (source("group", user_id="7"), ScopeSettings(dm="person"), "agent:main:telegram:group:-100"),
        (source("channel", user_id="7"), ScopeSettings(group="user"), "agent:main:telegram:channel:-100:7"),
        (source("group"), ScopeSettings(group="user"), "agent:main:telegram:group:-100"),
        (
            source("thread", thread_id="42", user_id="7"),
            ScopeSettings(),
            "agent:main:telegram:thread:-100:42",
        ),
        (
            source("thread", thread_id="42", user_id="7"),
            ScopeSettings(thread="user"),
            "agent:main:telegram:thread:-100:42:7",
        ),
        (source(account="bot1"), ScopeSettings(), "agent:main:telegram:dm:-100"),
        (source(account="bot:2"), ScopeSettings(), "agent:main:telegram@bot%3A2:dm:-100"),
        (source(chat_id="!r:x.org@1%"), ScopeSettings(), "agent:main:telegram:dm:!r%3Ax.org%401%25"),
    ],
)
def test_a_key_has_the_form_that_the_product_defines(where: Source, scope: ScopeSettings, key: str) -> None:
    assert key_for(where, scope, first_account="bot1", person_id=3) == key


def test_the_profile_is_in_the_key_and_escaped() -> None:
    assert key_for(LOCAL_CLI, ScopeSettings(), profile="a:b") == "agent:a%3Ab:local:dm:cli"


def test_scope_person_without_a_linked_person_acts_as_chat() -> None:
    assert key_for(source(), ScopeSettings(dm="person")) == "agent:main:telegram:dm:-100"


def test_an_empty_profile_is_refused() -> None:
    with pytest.raises(InvalidValue, match="profile"):
        key_for(LOCAL_CLI, ScopeSettings(), profile="")


@pytest.mark.parametrize("wrong", [{"dm": "user"}, {"group": "shared"}, {"thread": "chat"}])
def test_an_unknown_scope_is_refused_by_its_setting(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=f"scope.{next(iter(wrong))}"):
        ScopeSettings(**wrong)


PEOPLE = st.none() | st.integers(1, 2)
SPEAKERS = st.tuples(sources(), PEOPLE)


@settings(max_examples=100)
@given(SCOPES, st.none() | SPELLINGS, SPEAKERS, SPEAKERS)
def test_two_sources_have_the_same_key_exactly_if_the_scope_does_not_separate_them(
    scope: ScopeSettings, first: str | None, one: tuple[Source, int | None], other: tuple[Source, int | None]
) -> None:
    (a, a_person), (b, b_person) = one, other
    same = what_matters(a, scope, a_person, first) == what_matters(b, scope, b_person, first)
    a_key = key_for(a, scope, first_account=first, person_id=a_person)
    b_key = key_for(b, scope, first_account=first, person_id=b_person)
    assert (a_key == b_key) is same


@settings(max_examples=100)
@given(st.text())
def test_escaping_is_reversible_and_leaves_no_special_character(text: str) -> None:
    escaped = escape_part(text)
    assert unescape_part(escaped) == text
    assert not {":", "@"} & set(escaped)
