"""Who may speak and what each role may use; pairing codes and their limits; audiences."""

from string import ascii_uppercase, digits
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.clock import HOUR, SECOND
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.people.rules.access import (
    Allowed,
    Grant,
    PairingTries,
    Refused,
    after_wrong_code,
    audience_of,
    may_speak,
    may_use_command,
    pairing_locked,
    pairing_refused,
    parse_pairing_code,
)
from keryx.core.people.rules.person import Person, PersonId
from keryx.core.values.role import Role
from keryx.errors import InvalidValue
from keryx.ids import PAIRING_ALPHABET, Ids

NOW = 1_800_000_000 * SECOND
ANA, BEN = PersonId(1), PersonId(2)


def person(role: Role = "member", *, blocked_at: int | None = None) -> Person:
    return Person(id=ANA, name="Ana", role=role, blocked_at=blocked_at)


def uses(role: Role, platform: str, name: str, *grants: Grant, least: Role = "member") -> bool:
    return may_use_command(grants, role=role, platform=platform, name=name, least=least)


def test_a_known_person_may_speak() -> None:
    assert may_speak(person("guest"), chat_type="group", pairing=False) == Allowed(person=person("guest"))


def test_a_stranger_is_offered_a_code_only_in_a_direct_message_and_if_the_owner_lets_them_ask() -> None:
    offers = {
        (chat_type, pairing): may_speak(None, chat_type=chat_type, pairing=pairing)
        for chat_type in ("dm", "group")
        for pairing in (True, False)
    }
    assert offers.pop(("dm", True)) == Refused(reason="stranger", offer_pairing=True)
    assert set(offers.values()) == {Refused(reason="stranger", offer_pairing=False)}


def test_a_blocked_person_gets_no_answer() -> None:
    refused = may_speak(person(blocked_at=NOW), chat_type="dm", pairing=True)
    assert refused == Refused(reason="blocked", offer_pairing=False)


def test_without_grants_the_least_role_decides() -> None:
    assert uses("member", "telegram", "new")
    assert uses("guest", "telegram", "help", least="guest")
    assert not uses("guest", "telegram", "new")
    assert not uses("member", "telegram", "sethome", least="owner")


def test_a_grant_counts_only_for_its_role_platform_and_kind() -> None:
    new: Any = {"kind": "command", "name": "new"}
    assert uses("guest", "telegram", "new", Grant(role="guest", platform="telegram", **new))
    assert not uses("guest", "telegram", "new", Grant(role="guest", platform="signal", **new))
    assert not uses("guest", "telegram", "new", Grant(role="member", **new))
    assert not uses("guest", "telegram", "new", Grant(role="guest", kind="toolset", name="new"))


def test_the_owner_cannot_be_locked_out_of_a_command() -> None:
    assert uses("owner", "signal", "pair", Grant(role="owner", kind="command", name="*", allow=False))


def test_the_more_specific_grant_decides() -> None:
    everything_off = Grant(role="member", kind="command", name="*", allow=False)
    new_on = Grant(role="member", kind="command", name="new")
    new_off_here = Grant(role="member", kind="command", name="new", platform="slack", allow=False)
    grants = (new_off_here, everything_off, new_on)
    assert uses("member", "signal", "new", *grants)
    assert not uses("member", "slack", "new", *grants)
    assert not uses("member", "signal", "fork", *grants)


def test_of_two_equally_specific_grants_the_denial_wins() -> None:
    here = Grant(role="guest", kind="command", name="*", platform="slack")
    never = Grant(role="guest", kind="command", name="new", allow=False)
    assert not uses("guest", "slack", "new", here, never)
    assert not uses("guest", "slack", "new", never, here)
    assert uses("guest", "slack", "fork", here, never)


@pytest.mark.parametrize("wrong", [{"role": "admin"}, {"kind": "tool"}, {"name": ""}, {"platform": "No"}])
def test_an_invalid_grant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Grant(**({"role": "guest", "kind": "command", "name": "new"} | wrong))


@settings(max_examples=100)
@given(st.integers())
def test_every_generated_code_is_read_back_however_it_is_typed(seed: int) -> None:
    code = Ids(seed).pairing_code()
    assert parse_pairing_code(f" {code[:4].lower()}-{code[4:]} ") == code


@pytest.mark.parametrize("text", ["", "ABCDEFG", "ABCDEFGHJ", "ABCDEFG0", "ABCDEFGI", "ABCDEFGß"])
def test_an_invalid_code_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="no I, L and O, and digits but no 0 and 1"):
        parse_pairing_code(text)


def test_the_error_for_a_mistyped_code_names_all_characters_that_no_code_has() -> None:
    assert set(ascii_uppercase + digits) - set(PAIRING_ALPHABET) == set("ILO01")


def test_a_fourth_pending_code_is_not_issued() -> None:
    assert pairing_refused(pending=2, tries=PairingTries(), now=NOW) is None
    assert pairing_refused(pending=3, tries=PairingTries(), now=NOW) == "too_many_pending"


def test_the_fifth_wrong_code_locks_for_an_hour_and_then_the_count_restarts() -> None:
    tries = PairingTries()
    for _ in range(4):
        tries = after_wrong_code(tries, now=NOW)
        assert not pairing_locked(tries, now=NOW)
    locked = after_wrong_code(tries, now=NOW)
    assert pairing_refused(pending=0, tries=locked, now=NOW + HOUR - 1) == "locked"
    assert after_wrong_code(locked, now=NOW + HOUR - 1) == locked
    assert not pairing_locked(locked, now=NOW + HOUR)
    assert after_wrong_code(locked, now=NOW + HOUR) == PairingTries(wrong=1)


def test_direct_messages_of_one_person_have_one_audience_on_every_platform() -> None:
    phone = Source(platform="signal", chat_id="+39", chat_type="dm")
    assert audience_of(LOCAL_CLI, ANA) == audience_of(phone, ANA)
    assert audience_of(phone, ANA) != audience_of(phone, BEN)


def test_a_group_shares_its_audience_only_with_its_threads() -> None:
    group = Source(platform="slack", account="t1", chat_id="C1", chat_type="group")
    thread = Source(platform="slack", account="t1", chat_id="C1", chat_type="thread", thread_id="9")
    heard = audience_of(group, ANA)
    assert heard == audience_of(thread, BEN)
    for other in (
        LOCAL_CLI,
        Source(platform="slack", account="t1", chat_id="C2", chat_type="group"),
        Source(platform="slack", account="t2", chat_id="C1", chat_type="group"),
        Source(platform="discord", account="t1", chat_id="C1", chat_type="group"),
        Source(platform="slack", chat_id="t1:C1", chat_type="group"),
    ):
        assert heard != audience_of(other, ANA)
