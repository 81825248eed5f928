"""The inbox: states, fates, and what may be an inbound message."""

from dataclasses import replace

import pytest

from keryx.domain.inbox import (
    ATTEMPTS_MAX,
    FATES,
    INBOX_STATES,
    Inbound,
    fate_fits,
    item_may_become,
    may_try_again,
)
from keryx.domain.message import TextPart
from keryx.domain.source import LOCAL_CLI
from keryx.errors import InvalidValue


def test_an_item_that_has_ended_stays_ended() -> None:
    legal = {(old, new) for old in INBOX_STATES for new in INBOX_STATES if item_may_become(old, new)}
    assert legal == {
        ("ready", "claimed"),
        ("ready", "done"),
        ("ready", "dead"),
        ("claimed", "ready"),
        ("claimed", "done"),
        ("claimed", "dead"),
    }


def test_every_fate_belongs_to_one_ended_state_and_none_to_the_others() -> None:
    fitting = {(state, fate) for state in INBOX_STATES for fate in (None, *FATES) if fate_fits(state, fate)}
    assert fitting == {
        ("ready", None),
        ("claimed", None),
        ("done", "answered"),
        ("done", "merged"),
        ("done", "cancelled"),
        ("done", "command"),
        ("dead", "failed"),
    }


def test_an_item_is_not_tried_for_ever() -> None:
    assert [may_try_again(attempts) for attempts in (0, ATTEMPTS_MAX - 1, ATTEMPTS_MAX)] == [
        True,
        True,
        False,
    ]


def test_an_inbound_message_has_a_ref_and_says_something() -> None:
    parts = (TextPart(text="hi"),)
    assert Inbound(source=LOCAL_CLI, ref="1", parts=parts).sent_at is None
    with pytest.raises(InvalidValue, match="needs a ref"):
        Inbound(source=LOCAL_CLI, ref="", parts=parts)
    with pytest.raises(InvalidValue, match="says nothing"):
        Inbound(source=LOCAL_CLI, ref="1", parts=())


def test_a_ref_that_no_database_can_keep_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"ref .* holds a NUL"):
        Inbound(source=LOCAL_CLI, ref="a\x00", parts=(TextPart(text="hi"),))


def test_an_id_that_no_index_can_hold_is_refused_where_it_comes_in() -> None:
    parts = (TextPart(text="hi"),)
    for longest in ("x" * 512, "é" * 256, ":" * 170):
        assert Inbound(source=replace(LOCAL_CLI, chat_id=longest), ref=longest, parts=parts).ref == longest
        with pytest.raises(InvalidValue, match=r"chat_id .* is too long"):
            Inbound(source=replace(LOCAL_CLI, chat_id=f"{longest}:"), ref="1", parts=parts)
        with pytest.raises(InvalidValue, match=r"user_id .* is too long"):
            Inbound(source=replace(LOCAL_CLI, user_id=f"{longest}:"), ref="1", parts=parts)
        with pytest.raises(InvalidValue, match=r"ref .* is too long"):
            Inbound(source=LOCAL_CLI, ref=f"{longest}:", parts=parts)
