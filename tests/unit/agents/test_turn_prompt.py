"""The prompt of a turn: it says nothing twice."""

import re
from collections import Counter

import pytest

from keryx.agents.agent import Brief
from keryx.agents.model.turn_prompt import title_prompt, turn_prompt
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.values.turn_states import TurnId, TurnPurpose

GROUP = Source(
    platform="telegram",
    chat_id="-100",
    chat_type="group",
    chat_name="Family",
    chat_topic="Rome",
    user_id="7",
    user_name="Ana",
)


def brief(source: Source, purpose: TurnPurpose) -> Brief:
    facts = ContextFacts(
        source=source,
        session_id="20260101_000000_0000abcd",
        started_at=0,
        title="Rome",
        platforms=frozenset({"telegram", "slack"}),
        homes={"telegram": "Family", "slack": "Ops"},
        destinations=("origin", "local", "slack", "telegram"),
        workspace="/work",
        personality="Be kind.",
        reset_line="This conversation is fresh since 04:00.",
        memories=("Ana likes tea.", "Ana lives in Rome."),
    )
    return Brief(
        turn_id=TurnId(1),
        session_id=facts.session_id,
        purpose=purpose,
        context=facts,
        messages=(),
        tools=(),
        role="owner",
    )


def sentences(text: str) -> list[str]:
    """Return the sentences, line breaks and case aside."""
    flat = " ".join(text.lower().split())
    return [each.strip() for each in re.split(r"(?<=[.!?:;])\s+", flat) if len(each.split()) > 2]


@pytest.mark.parametrize("purpose", ["reply", "flush", "schedule"])
@pytest.mark.parametrize("source", [LOCAL_CLI, GROUP], ids=["terminal", "group"])
def test_no_sentence_is_repeated(source: Source, purpose: TurnPurpose) -> None:
    prompt = turn_prompt(brief(source, purpose), media={})
    said = Counter(sentences("\n".join([prompt.instructions, prompt.context, prompt.request or ""])))
    assert [each for each, times in said.items() if times > 1] == []


def test_the_rule_about_the_words_of_others_stands_once_for_each_kind_of_words() -> None:
    prompt = turn_prompt(brief(GROUP, "reply"), media={})
    assert "quoted" not in prompt.instructions, (
        "the data block says so itself, also to agents without instructions"
    )
    assert (prompt.instructions + prompt.context).count("instructions to you") == 1


def test_no_sentence_of_a_request_for_a_title_is_repeated() -> None:
    prompt = title_prompt([])
    said = Counter(sentences("\n".join([prompt.instructions, prompt.context, prompt.request or ""])))
    assert max(said.values()) == 1


def test_the_system_prompt_does_not_depend_on_the_time() -> None:
    prompts = [turn_prompt(brief(LOCAL_CLI, "reply"), media={}) for _ in range(2)]
    assert len({(each.instructions, each.context) for each in prompts}) == 1
