"""The tools of a delegated session, and the text form of a delegation."""

import pytest

from keryx.core.turns.rules.delegation import DEPTH_MAX, Delegation
from keryx.errors import InvalidValue


def test_a_delegation_survives_printing_and_parsing() -> None:
    given = Delegation(key="k", depth=1, tools=("a", "b"))
    assert Delegation.parse(str(given)) == given


@pytest.mark.parametrize("text", ["", "hermes:17", "[]", "{}", '{"call":"k","depth":9,"tools":[]}'])
def test_a_text_without_a_task_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        Delegation.parse(text)


@pytest.mark.parametrize("depth", [0, DEPTH_MAX + 1])
def test_the_depth_is_bounded(depth: int) -> None:
    with pytest.raises(InvalidValue, match="do it here instead"):
        Delegation(key="k", depth=depth, tools=())


def test_only_delegated_tools_that_reach_no_person_are_given() -> None:
    given = Delegation(key="k", depth=1, tools=("look", "ask", "send", "delegate"))
    assert given.gives("look", toolset="state", effect="pure")
    assert given.gives("delegate", toolset="general", effect="idempotent")
    assert not given.gives("write", toolset="state", effect="once")
    assert not given.gives("ask", toolset="general", effect="ask")
    assert not given.gives("send", toolset="talk", effect="once")
    deepest = Delegation(key="k", depth=DEPTH_MAX, tools=("delegate",))
    assert not deepest.gives("delegate", toolset="general", effect="idempotent")
