"""The inbox: states, fates, and validation of inbound messages."""

from dataclasses import replace

import pytest

from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.turns.rules.inbox import (
    ATTEMPTS_MAX,
    Inbound,
    may_try_again,
)
from keryx.errors import InvalidValue


def test_the_attempts_of_an_item_are_bounded() -> None:
    assert [may_try_again(attempts) for attempts in (0, ATTEMPTS_MAX - 1, ATTEMPTS_MAX)] == [
        True,
        True,
        False,
    ]


def test_an_inbound_message_needs_a_ref_and_a_part() -> None:
    parts = (TextPart(text="hi"),)
    assert Inbound(source=LOCAL_CLI, ref="1", parts=parts).sent_at is None
    with pytest.raises(InvalidValue, match="needs a ref"):
        Inbound(source=LOCAL_CLI, ref="", parts=parts)
    with pytest.raises(InvalidValue, match="has no parts"):
        Inbound(source=LOCAL_CLI, ref="1", parts=())


def test_a_ref_that_no_database_can_store_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"ref .* holds a NUL"):
        Inbound(source=LOCAL_CLI, ref="a\x00", parts=(TextPart(text="hi"),))


def test_an_id_that_is_too_long_for_an_index_is_refused_at_intake() -> None:
    parts = (TextPart(text="hi"),)
    for longest in ("x" * 512, "é" * 256, ":" * 170):
        assert Inbound(source=replace(LOCAL_CLI, chat_id=longest), ref=longest, parts=parts).ref == longest
        with pytest.raises(InvalidValue, match=r"chat_id .* is too long"):
            Inbound(source=replace(LOCAL_CLI, chat_id=f"{longest}:"), ref="1", parts=parts)
        with pytest.raises(InvalidValue, match=r"user_id .* is too long"):
            Inbound(source=replace(LOCAL_CLI, user_id=f"{longest}:"), ref="1", parts=parts)
        with pytest.raises(InvalidValue, match=r"ref .* is too long"):
            Inbound(source=LOCAL_CLI, ref=f"{longest}:", parts=parts)
