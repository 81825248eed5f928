"""People, roles, and the canonical id of a user with several ids."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.people.rules.person import Person, PersonId, ResolvedId, canonical_id, resolve_id
from keryx.core.values.role import ROLES, at_least
from keryx.errors import InvalidValue

IDS = st.sampled_from("abcdef")
ANA = Person(id=PersonId(1), name="Ana", role="owner")


def test_roles_include_those_below_them() -> None:
    assert [[at_least(role, least) for least in ROLES] for role in ROLES] == [
        [True, True, True],
        [False, True, True],
        [False, False, True],
    ]


@pytest.mark.parametrize("wrong", [{"id": PersonId(0)}, {"role": "admin"}])
def test_an_invalid_person_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        replace(ANA, **wrong)


def test_an_alias_is_followed_to_its_end() -> None:
    assert canonical_id({"phone": "lid", "lid": "uuid"}, "phone") == "uuid"
    assert canonical_id({"phone": "lid"}, "other") == "other"
    assert canonical_id({"self": "self"}, "self") == "self"


def test_a_cycle_of_aliases_has_one_end_wherever_it_is_entered() -> None:
    aliases = {"x": "c", "a": "b", "b": "c", "c": "a"}
    assert {canonical_id(aliases, given) for given in "xabc"} == {"a"}


@settings(max_examples=100)
@given(st.dictionaries(IDS, IDS), IDS)
def test_whatever_the_aliases_an_id_and_its_alias_have_one_end(
    aliases: dict[str, str], given_id: str
) -> None:
    end = canonical_id(aliases, given_id)
    assert canonical_id(aliases, aliases.get(given_id, given_id)) == end
    assert canonical_id(aliases, end) == end


@pytest.mark.parametrize(
    ("alt", "known", "resolved"),
    [
        (None, set(), ResolvedId(canonical="uuid")),
        ("uuid", set(), ResolvedId(canonical="uuid")),
        ("phone", set(), ResolvedId(canonical="uuid", learnt=("phone", "uuid"))),
        ("phone", {"phone"}, ResolvedId(canonical="phone", learnt=("uuid", "phone"))),
        ("phone", {"uuid", "phone"}, ResolvedId(canonical="uuid", learnt=("phone", "uuid"))),
    ],
)
def test_a_known_user_keeps_the_id_of_the_first_meeting(
    alt: str | None, known: set[str], resolved: ResolvedId
) -> None:
    assert resolve_id({}, "uuid", alt=alt, known=known) == resolved


def test_a_known_alias_is_not_stored_again() -> None:
    assert resolve_id({"phone": "uuid"}, "uuid", alt="phone", known={"uuid"}) == ResolvedId(canonical="uuid")


@settings(max_examples=100)
@given(IDS, IDS, IDS)
def test_after_an_alias_is_stored_both_ids_resolve_to_the_same(a: str, b: str, used: str) -> None:
    first = resolve_id({}, a, alt=b, known={used})
    aliases = dict([first.learnt]) if first.learnt else {}
    assert canonical_id(aliases, a) == canonical_id(aliases, b) == first.canonical
    assert resolve_id(aliases, b, alt=a, known={used}) == ResolvedId(canonical=first.canonical)
