"""Compaction: a summary before the context window is full, else a cut; and a refusal by the provider."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from keryx.agents.agent import Answer, HistoryItem, StepDone
from keryx.agents.model.choice import ModelChoice
from keryx.agents.model.compaction import NOT_SMALLER, ROUNDS_MAX, TOO_SHORT
from keryx.agents.model.guide import Guide
from keryx.agents.model.summary_prompt import INSTRUCTIONS, NOTES
from keryx.core.context.rules.compaction import KEPT_TURNS
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    TextPart,
    ToolCallPart,
    encode_parts,
    text_of,
)
from keryx.core.conversations.rules.session_settings import ModelSettings
from keryx.core.people.rules.toolset import MEMORY
from keryx.errors import AgentFailed
from keryx.testing.model_server import Asked, Call, ModelServer, Refusal, Reply
from keryx.testing.model_server.script import too_long
from tests.unit.agents.stage import LOOK, MODELS, Noted, Shape, agent_of, brief, message

WINDOW = 4_000
both = pytest.mark.parametrize("shape", ["openai", "anthropic"])


def talk(turns: int, *, tokens: int = 100) -> list[HistoryItem]:
    said: list[HistoryItem] = []
    for number in range(turns):
        said.append(message(len(said) + 1, "user", TextPart(text=f"question{number} " + "word " * tokens)))
        said.append(message(len(said) + 1, "assistant", TextPart(text=f"answer{number} " + "abc " * tokens)))
    said.append(message(len(said) + 1, "user", TextPart(text="And now?")))
    return said


def is_summary(asked: Asked) -> bool:
    return INSTRUCTIONS[:40] in str(asked.body)


def play(asked: Asked) -> Reply:
    return Reply(text="In short.") if is_summary(asked) else Reply(text="Now this.")


async def run(
    server: ModelServer,
    stage: Noted,
    said: Sequence[HistoryItem],
    *,
    shape: Shape = "openai",
    window: int = WINDOW,
    settings: ModelSettings | None = None,
) -> Answer:
    stage.told = list(said)
    agent = agent_of(server, shape, choice=ModelChoice(model=MODELS[shape], context_tokens=window))
    try:
        return await agent.run(brief(*said, model_settings=settings), stage)
    finally:
        await agent.close()


def text(answer: Answer) -> str:
    assert answer.message is not None
    return text_of(answer.message.parts)


@both
async def test_a_prompt_that_fills_the_window_is_summarised_first(shape: Shape) -> None:
    stage = Noted()
    async with ModelServer(play) as server:
        assert text(await run(server, stage, talk(20), shape=shape)) == "Now this."
        summary, question = server.requests
    assert is_summary(summary)
    assert "tools" not in summary.body
    assert "question0" in str(summary.messages)
    assert "In short." in str(question.messages)
    assert "question0" not in str(question.messages)
    assert "question19" in str(question.messages)
    assert stage.said == ["Now", " this."], "nobody hears the summary"
    (covered,) = stage.covers
    assert (covered.first_seq, covered.text) == (1, "In short.")
    assert (covered.cost.model, covered.cost.input_tokens, covered.cost.output_tokens) == (
        MODELS[shape],
        10,
        5,
    )


async def test_with_the_memory_tools_a_summary_also_keeps_notes() -> None:
    def play_notes(asked: Asked) -> Reply:
        written = "In short.\n\n===\n- Likes tea.\n\nLives in Rome.\n"
        return Reply(text=written) if is_summary(asked) else Reply(text="Now this.")

    stage = Noted()
    stage.told = talk(20)
    async with ModelServer(play_notes) as server:
        agent = agent_of(server, "openai", choice=ModelChoice(model=MODELS["openai"], context_tokens=WINDOW))
        await agent.run(brief(*stage.told, tools=[replace(LOOK, toolset=MEMORY)]), stage)
        await agent.close()
        assert NOTES in str(server.requests[0].messages)
    (covered,) = stage.covers
    assert (covered.text, covered.notes) == ("In short.", ("Likes tea.", "Lives in Rome."))


async def test_without_the_memory_tools_no_notes_are_requested() -> None:
    stage = Noted()
    async with ModelServer(play) as server:
        await run(server, stage, talk(20))
        assert NOTES not in str(server.requests[0].messages)
    assert stage.covers[0].notes == ()


async def test_a_prompt_that_fits_is_sent_unchanged() -> None:
    stage = Noted()
    async with ModelServer(play) as server:
        await run(server, stage, talk(3))
        assert len(server.requests) == 1
    assert stage.covers == []


async def test_room_is_left_for_the_requested_answer_length() -> None:
    stage = Noted()
    async with ModelServer(play) as server:
        await run(server, stage, talk(9), settings=ModelSettings(tokens_max=2_000))
        summary, question = server.requests
    assert (summary.body.get("max_tokens"), question.body["max_completion_tokens"]) == (None, 2_000)


async def test_the_provider_s_count_decides_over_the_estimate() -> None:
    said = talk(3)
    counted = said[3]._replace(input_tokens=3_600)  # type: ignore[union-attr]
    stage = Noted()
    async with ModelServer(play) as server:
        await run(server, stage, [*said[:3], counted, *said[4:]])
    assert len(stage.covers) == 1
    stage = Noted()
    before = Cover(
        session_id="s",
        no=1,
        branch_no=0,
        first_seq=1,
        last_seq=2,
        summary="x",
        tokens_before=9,
        tokens_after=1,
        created_at=5,
    )
    async with ModelServer(play) as server:
        await run(server, stage, [before, said[2], counted, *said[4:]])
        await run(server, stage, [*said[:3], counted, before, said[6]])
    assert stage.covers == [], "it was counted before there was a summary"


@pytest.mark.parametrize(
    "answer",
    [
        Refusal(status=500),
        Reply(text="   "),
        Reply(text="much " * 700),
        Reply(text="cut off", cut_after=1),
    ],
)
async def test_without_a_model_s_summary_beginnings_and_ends_are_used(answer: Reply | Refusal) -> None:
    stage = Noted()
    async with ModelServer(lambda asked: answer if is_summary(asked) else Reply(text="Now this.")) as server:
        assert text(await run(server, stage, talk(20))) == "Now this."
    (covered,) = stage.covers
    assert covered.text.startswith("(Made without a model")
    assert "[1] user: question0" in covered.text
    assert covered.tokens_after < covered.tokens_before / 2


async def test_a_fallback_writes_the_summary_if_the_first_model_fails() -> None:
    stage = Noted()
    stage.told = talk(20)
    choice = ModelChoice(
        model="openai:first", fallbacks=["openai:second"], context_tokens_of={"openai:first": WINDOW}
    )

    def answer(asked: Asked) -> Reply | Refusal:
        return Refusal(status=401) if asked.body["model"] == "first" else play(asked)

    async with ModelServer(answer) as server:
        agent = agent_of(server, choice=choice)
        await agent.run(brief(*stage.told), stage)
        await agent.close()
    assert stage.covers[0].cost.model == "openai:second"


@both
async def test_a_prompt_that_the_provider_finds_too_long_is_shortened_and_retried(shape: Shape) -> None:
    stage = Noted()
    async with ModelServer(play, window_tokens=2_500) as server:
        assert text(await run(server, stage, talk(20), shape=shape, window=100_000)) == "Now this."
        assert len(server.refused) >= 1
    assert stage.covers


async def test_a_prompt_that_cannot_be_shortened_enough_is_reported() -> None:
    told = {
        20: "this conversation is too long for openai:scripted, even summarised. /new starts a fresh one",
        0: "this is too long for openai:scripted, with nothing before it .* Send less at once",
    }
    for count, words in told.items():
        stage = Noted()
        async with ModelServer(play, window_tokens=10) as server:
            with pytest.raises(AgentFailed, match=words):
                await run(server, stage, talk(count))


async def test_a_prompt_too_long_for_one_model_goes_to_the_next() -> None:
    choice = ModelChoice(model="openai:first", fallbacks=["openai:second"])

    def answer(asked: Asked) -> Reply | Refusal:
        return play(asked) if asked.body["model"] == "second" else too_long(asked, 9, 8)

    stage = Noted()
    stage.told = talk(0)
    async with ModelServer(answer) as server:
        agent = agent_of(server, choice=choice)
        assert text(await agent.run(brief(*stage.told), stage)) == "Now this."
        await agent.close()
    assert stage.asked[-1].model == "openai:second"


async def test_a_summary_that_cannot_be_stored_does_not_stop_the_turn() -> None:
    stage = Noted(refuses=True)
    async with ModelServer(play) as server:
        assert text(await run(server, stage, talk(20))) == "Now this."


async def test_the_steps_of_a_long_turn_are_summarised_but_new_messages_stay() -> None:
    stage = StoringStage(joined=(NewMessage(role="user", parts=(TextPart(text="Also the bar!"),)),))

    def answer(asked: Asked) -> Reply:
        if is_summary(asked):
            return Reply(text="It looked.")
        return (
            Reply(text="Done.")
            if len(stage.steps) > 5
            else Reply(calls=[Call(name="look", arguments={"at": len(stage.steps)})])
        )

    async with ModelServer(answer, window_tokens=WINDOW) as server:
        assert text(await run(server, stage, [message(1, "user", TextPart(text="Look at all."))])) == "Done."
        assert server.refused == []
        last = str(server.requests[-1].messages)
        second = str(server.requests[1].messages)
    assert stage.covers[0].first_seq == 2
    assert "Look at all." in last
    assert "It looked." in last
    assert "Also the bar!" in second
    ids = [part.call_id for step in stage.steps for part in step.parts if isinstance(part, ToolCallPart)]
    assert len(set(ids)) == len(ids) == 6


class StoringStage(Noted):
    """A stage that keeps its steps, whose results are long."""

    async def act(self, step: NewMessage) -> StepDone:
        done = await super().act(step)
        results = tuple(replace(result, output="seen " * 700) for result in done.results)
        for each in (step, *(NewMessage(role="tool", parts=(result,)) for result in results)):
            last = self.told[-1]
            seq = (last.last_seq if isinstance(last, Cover) else last.seq) + 1
            self.told.append(stored(seq, each))
        return replace(done, results=results)


def stored(seq: int, new: NewMessage) -> Message:
    counts = (new.input_tokens, new.cached_tokens, new.output_tokens, new.thinking_tokens, new.cost_micros)
    return Message(seq, "s", 0, seq, new.role, encode_parts(new.parts), None, None, None, *counts, None, seq)


async def test_the_context_usage_shows_the_parts_of_the_prompt() -> None:
    stage = Noted()
    script = [Reply(text="So.", input_tokens=3_000, output_tokens=7)]
    async with ModelServer(script) as server:
        await run(server, stage, talk(5), window=10_000)
    usage = stage.asked[-1].context_usage
    assert usage is not None
    assert (usage.window, usage.total, usage.attachments) == (10_000, 3_007, 0)
    assert usage.system > 100
    assert usage.tools > 10


async def test_a_requested_summary_is_made_and_reported() -> None:
    stage = Noted()
    said = talk(10)[:-1]
    stage.told = list(said)
    async with ModelServer(play) as server:
        agent = agent_of(server)
        answer = await agent.run(
            brief(*said, purpose="compress", focus="the hotel"),
            stage,
        )
        await agent.close()
        (asked,) = server.requests
    assert "the hotel" in str(asked.messages)
    assert (answer.message, stage.covers[0].focus, stage.covers[0].last_seq) == (
        None,
        "the hotel",
        20 - 2 * KEPT_TURNS,
    )
    assert answer.notice is not None
    assert answer.notice.startswith("12 messages are now a summary of 23 tokens instead of ")
    usage = stage.asked[-1].context_usage
    assert usage is not None
    assert usage.history < 2_000


async def test_pinned_messages_are_not_summarised() -> None:
    stage = Noted(pins=frozenset({2, 9}))
    async with ModelServer(play) as server:
        assert text(await run(server, stage, talk(20))) == "Now this."
        asked = str(server.requests[-1].messages)
    assert "answer0 " in asked
    assert "question4 " in asked
    assert "answer1 " not in asked
    assert "question5 " not in asked
    covered = [(each.first_seq, each.last_seq) for each in stage.covers]
    assert not [ends for ends in covered if ends[0] <= 2 <= ends[1] or ends[0] <= 9 <= ends[1]]


@pytest.mark.parametrize("pins", [frozenset(range(1, 42)), frozenset(range(1, 42, 2))])
async def test_a_conversation_of_pinned_messages_continues(pins: frozenset[int]) -> None:
    stage = Noted(pins=pins)
    async with ModelServer(play, window_tokens=WINDOW) as server:
        assert text(await run(server, stage, talk(20))) == "Now this."
        assert server.refused == []
    assert stage.covers


async def test_pinned_messages_are_summarised_if_the_provider_finds_the_prompt_too_long() -> None:
    said: list[HistoryItem] = []
    for seq in range(1, 80, 2):
        said.append(message(seq, "user", TextPart(text="word " * 35)))
        said.append(message(seq + 1, "assistant", TextPart(text="Yes.")))
    said.append(message(81, "user", TextPart(text="And now?")))
    stage = Noted(pins=frozenset(range(2, 80, 2)))
    async with ModelServer(play, window_tokens=1_500) as server:
        assert text(await run(server, stage, said, window=100_000)) == "Now this."
        assert server.refused, "it is too long, and there is too little between what is pinned"
    assert [each for each in stage.covers if each.first_seq <= 2 <= each.last_seq]


async def test_a_long_history_full_of_pins_is_finally_summarised_with_them() -> None:
    pins = frozenset(range(10, 200, 10))
    said = [
        message(each.seq, "assistant", TextPart(text="Kept."))
        if isinstance(each, Message) and each.seq in pins
        else each
        for each in talk(100)
    ]
    stage = Noted(pins=pins)
    async with ModelServer(play, window_tokens=WINDOW) as server:
        assert text(await run(server, stage, said)) == "Now this."
        assert server.refused == []
    assert len(stage.covers) == 2 * ROUNDS_MAX
    around = [not pins & set(range(each.first_seq, each.last_seq + 1)) for each in stage.covers]
    assert around == [True] * (2 * ROUNDS_MAX - 1) + [False]


async def test_a_requested_summary_leaves_out_pinned_messages() -> None:
    stage = Noted(pins=frozenset({5}))
    said = talk(10)[:-1]
    stage.told = list(said)
    answer = await Guide().run(brief(*said, purpose="compress"), stage)
    assert [(each.first_seq, each.last_seq) for each in stage.covers] == [(1, 4), (6, 12)]
    assert answer.notice is not None
    assert answer.notice.startswith("11 messages are now a summary of ")


async def test_without_a_model_the_guide_condenses_messages() -> None:
    stage = Noted()
    for said, refuses, told in (
        (talk(10)[:-1], False, "No model wrote it"),
        (talk(2), False, TOO_SHORT),
        (talk(10)[:-1], True, NOT_SMALLER),
    ):
        stage.told, stage.refuses = list(said), refuses
        answer = await Guide().run(brief(*said, purpose="compress"), stage)
        assert answer.notice is not None
        assert told in answer.notice
        assert (answer.message, answer.silent) == (None, False)
    assert len(stage.covers) == 1


async def test_a_window_known_to_the_packages_is_used() -> None:
    stage = Noted()
    said = talk(5)
    stage.told = list(said)
    async with ModelServer([Reply(text="So."), Reply(text="So.")]) as server:
        for model, least, most in (
            ("openai:nobody-knows-it", 128_000, 128_000),
            ("openai:gpt-4.1", 900_000, 1_100_000),
        ):
            agent = agent_of(server, choice=ModelChoice(model=model))
            await agent.run(brief(*said), stage)
            await agent.close()
            usage = stage.asked[-1].context_usage
            assert usage is not None
            assert least <= usage.window <= most
