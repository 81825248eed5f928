"""The tools for Keryx itself, through the gateway and alone: asking, sending, reading, scheduling, watching."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.agents.model.guide import Guide
from keryx.backends.local.registry import Registry
from keryx.clock import HOUR
from keryx.core.conversations.rules.message import (
    MediaPart,
    NewMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.change_session import delete
from keryx.core.conversations.transactions.session_guard import Actor as ShapeActor
from keryx.core.processes.transactions.record_process import NewProcess, record_end, record_started
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from keryx.testing.model_server import Asked, Call, ModelServer, Reply
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.shell.process import ProcessTool
from keryx.tools.tool import Toolbox, ToolCall
from tests.conformance.stage import Stage as Play
from tests.flow.agents.test_model_turns import agent_on
from tests.flow.running import Actor, running, said, until


def results_of(asked: Asked) -> list[str]:
    return [str(message["content"]) for message in asked.messages if message["role"] == "tool"]


def asks(**arguments: JsonValue) -> "ModelServer":
    """A model that asks the person, then repeats the answer."""

    def play(asked: Asked) -> Reply:
        told = results_of(asked)
        return (
            Reply(text=f"So: {told[-1]}")
            if told
            else Reply(calls=[Call(name="ask_user", arguments=arguments)])
        )

    return ModelServer(play)


# ------------------------------------------------------------------------------------------ ask_user


async def test_a_question_survives_a_restart_and_the_next_message_answers_it(
    store: Database, platform: FakePlatform
) -> None:
    question = "Which tea?\n1. green\n2. black\nAnswer with a number or in your own words, or /deny."
    async with asks(question="Which tea?", choices=["green", "black"]) as server:
        tools = list(keryx_tools(store))
        async with running(store, platform, agent_on(server), tools=tools, holder="first") as gateway:
            platform.say("Make tea.", user="ben")
            await until(lambda: platform.said_to("1") == [question] and not gateway.turns_running)
        async with running(store, platform, agent_on(server), tools=tools, holder="second"):
            platform.say("2.", user="ben")
            await until(lambda: platform.said_to("1") == [question, "So: black"])


@pytest.mark.parametrize(
    ("said_then", "told"),
    [
        ("white, if there is any", "white, if there is any"),
        ("9", "9"),
        ("/approve", "The person said yes, and nothing more."),
        ("/deny", "This was not done: the person who was asked did not allow it."),
    ],
)
async def test_any_answer_is_the_result(
    store: Database, platform: FakePlatform, said_then: str, told: str
) -> None:
    async with (
        asks(question="Which tea?") as server,
        running(store, platform, agent_on(server), tools=list(keryx_tools(store))) as gateway,
    ):
        platform.say("Make tea.")
        await until(lambda: len(platform.shown) == 1 and not gateway.turns_running)
        platform.say(said_then)
        await until(lambda: platform.said_to("1")[-1].startswith("So: "))
    assert told in platform.said_to("1")[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Give 'question': a text."),
        ({"question": "?", "choices": ["x"] * 11}, "Give at most 10 choices."),
        ({"question": "?" * 4_000}, "Ask more briefly: at most 3000 characters with all choices."),
    ],
)
async def test_an_invalid_question_is_reported_to_the_model_and_the_turn_continues(
    store: Database, platform: FakePlatform, arguments: Mapping[str, JsonValue], told: str
) -> None:
    async with (
        asks(**arguments) as server,
        running(store, platform, agent_on(server), tools=list(keryx_tools(store))),
    ):
        platform.say("Make tea.")
        await until(lambda: bool(platform.shown))
    [text] = platform.said_to("1")
    assert text.startswith("So: ")
    assert told in text


# ------------------------------------------------------------------------------------------ send_message


async def test_a_text_to_others_is_shown_whole_and_waits_for_the_owner(
    store: Database, platform: FakePlatform
) -> None:
    async def act(brief: Brief, stage: Stage) -> Answer:
        if brief.context.source.chat_type != "dm":
            return said("hello all")
        told = [
            str(part.output)
            for message in brief.messages
            for part in getattr(message, "parts", ())
            if isinstance(part, ToolResultPart)
        ]
        if told:
            return said(told[-1])
        calls = tuple(
            ToolCallPart(
                call_id=name, name=name, arguments={"text": "Dinner at 8.", "route": f"{platform.name}:g"}
            )
            for name in ("send_message", "send_to_others")
        )
        await stage.act(NewMessage(role="assistant", parts=calls))
        raise AssertionError("it waits")

    async with running(store, platform, Actor(act), tools=list(keryx_tools(store))) as gateway:
        platform.say("hi", chat="g", chat_type="group")
        await until(lambda: platform.said_to("g") == ["hello all"])
        platform.say("Tell them when.")
        await until(lambda: len(platform.said_to("1")) == 1 and not gateway.turns_running)
        [asked] = platform.said_to("1")
        assert asked.startswith("May I send this to fake:g?\n\nDinner at 8.\n")
        assert f"(send_to_others: {platform.name}:g)" in asked
        assert platform.said_to("g") == ["hello all"]
        platform.say("/approve")
        await until(lambda: platform.said_to("g") == ["hello all", "Dinner at 8."])
        await until(lambda: "On its way to fake:g (group: g)." in platform.said_to("1"))


# ------------------------------------------------------------------------------------------ by themselves


class Desk:
    """Some conversations, and the tools to read them."""

    def __init__(self, database: Database, clock: FakeClock, output_dir: Path) -> None:
        self.play = Play(database=database, clock=clock)
        tools = keryx_tools(database, ids=self.play.ids, zone="Europe/Berlin", output_dir=output_dir)
        registry = Registry(database, output_dir.parent / "processes", clock=clock, ids=self.play.ids)
        self.tools = Toolbox([*tools, ProcessTool(database, registry)])
        self.use = ToolCall(arguments={}, session_id="", person_id=0, audience_id=None, key="k", source=dm())

    async def open(self) -> "Desk":
        """Let Ana, a member, write in private and in a group."""
        ana = await self.play.meet("ana")
        session_id = await self.play.exchange("the hotel in Rome", "It is booked.")
        self.use = replace(self.use, session_id=session_id, person_id=ana.id)
        return self

    async def ask(self, name: str, /, **arguments: JsonValue) -> str:
        tool = self.tools.find(name)
        assert tool is not None
        return str(await tool.run(replace(self.use, arguments=arguments)))

    async def refused(self, name: str, /, **arguments: JsonValue) -> str:
        with pytest.raises(ToolFailed) as refusal:
            await self.ask(name, **arguments)
        return str(refusal.value)

    async def in_group(self) -> None:
        """Continue in the group, where others read."""
        session_id = await self.play.exchange("a table for six", "Done.", source=group())
        audience_id = (await self.play.session(session_id)).audience_id
        self.use = replace(self.use, session_id=session_id, audience_id=audience_id, source=group())


@pytest.fixture
async def desk(database: Database, clock: FakeClock, tmp_path: Path) -> Desk:
    return await Desk(database, clock, tmp_path / "output").open()


async def test_a_conversation_is_read_by_id_title_or_number_page_by_page(desk: Desk) -> None:
    session_id = desk.use.session_id
    whole = await desk.ask("read_session", session=session_id)
    assert whole.startswith(f"the hotel in Rome ({session_id})\n[1] ")
    assert "user (Ana): the hotel in Rome" in whole
    assert whole.endswith("assistant: It is booked.")
    assert await desk.ask("read_session", session="1") == whole
    assert await desk.ask("read_session", session="Hotel") == whole
    last = await desk.ask("read_session", session="the hotel", limit="1")
    assert last.endswith("There is more before it: read with before=2.")
    assert "[1] " not in last
    assert "[2] " not in await desk.ask("read_session", session="1", before=2)
    assert (await desk.ask("read_session", session="1", before=1)).endswith("There are no messages.")


async def test_ids_and_numbers_come_from_the_lists(desk: Desk) -> None:
    session_id = desk.use.session_id
    assert (
        await desk.ask("list_sessions")
        == f"1. the hotel in Rome ({session_id}): 2 messages, less than a minute ago"
    )
    found = await desk.ask("search_history", query="booked")
    assert found == f"the hotel in Rome ({session_id}) [2]: assistant: It is booked."
    named = await desk.ask("search_history", query=session_id)
    assert named.startswith(f"the hotel in Rome ({session_id}): title: ")


async def test_a_search_does_not_find_the_question_that_it_answers(
    store: Database, platform: FakePlatform
) -> None:
    async with running(store, platform, Guide(), tools=keryx_tools(store)):
        platform.say("find zebra")
        await until(lambda: platform.said_to("1")[-1:] == ["Nothing found."])
        platform.say("I saw a zebra")
        await until(lambda: len(platform.said_to("1")) == 2)
        platform.say("find zebra")
        await until(lambda: len(platform.said_to("1")) == 3)
    found = platform.said_to("1")[-1].splitlines()
    assert "I saw a zebra" in found[0]
    # An earlier question is a hit. The current question, and the title made from it, are none.
    assert sum(line.endswith("user: find zebra") for line in found) == 1


async def test_calls_results_and_media_are_shown_as_short_notes(desk: Desk) -> None:
    parts: list[tuple[str, tuple[Part, ...]]] = [
        ("user", (MediaPart(media_type="image/png", url="https://x/y", name="cat.png"),)),
        ("assistant", (TextPart(text="I look."), ToolCallPart(call_id="c", name="look", arguments={}))),
        ("tool", (ToolResultPart(call_id="c", name="look", output={"a": 1}),)),
    ]
    for role, said_parts in parts:
        message = NewMessage(role=role, parts=said_parts)  # type: ignore[arg-type]
        await desk.play.do(
            lambda tx, message=message: append_message(  # type: ignore[misc]
                tx, SessionId(desk.use.session_id), message, person_id=desk.use.person_id
            )
        )
    told = await desk.ask("read_session", session="1")
    for piece in ("[cat.png]", "I look. [calls look]", "[result of look]"):
        assert piece in told


async def test_a_missing_foreign_or_ambiguous_conversation_is_not_read(desk: Desk) -> None:
    for wanted in ("nowhere", "0", "99", "20200101_000000_0000abcd", "2020"):
        assert (await desk.refused("read_session", session=wanted)).startswith("There is no conversation ")
    assert await desk.refused("read_session", session="1", limit=51) == "'limit' must be at most 50."
    assert await desk.refused("read_session", session="1", limit=True) == "'limit' must be a whole number."
    await desk.play.accept("/new")
    await desk.play.exchange("the hotel in Pisa")
    assert (await desk.refused("read_session", session="the hotel")).startswith(
        "Several conversations are called so"
    )
    ben = await desk.play.meet("ben")
    desk.use = replace(desk.use, person_id=ben.id)
    for wanted in (desk.use.session_id, "the hotel", "1"):
        assert (await desk.refused("read_session", session=wanted)).startswith("There is no conversation ")


async def test_in_a_group_only_the_group_s_conversations_are_read(desk: Desk) -> None:
    private = desk.use.session_id
    await desk.in_group()
    for wanted in (private, "the hotel", "2"):
        assert (await desk.refused("read_session", session=wanted)).startswith("There is no conversation ")
    assert "a table for six" in await desk.ask("read_session", session="a table")
    assert "a table for six" in await desk.ask("read_session", session="1")
    stranger = await desk.play.meet("ben")
    desk.use = replace(desk.use, person_id=stranger.id)
    assert (await desk.refused("read_session", session="1")).startswith("There is no conversation ")


async def test_a_conversation_in_the_bin_is_not_read(desk: Desk) -> None:
    session_id, owner = (
        SessionId(desk.use.session_id),
        ShapeActor(person_id=desk.use.person_id, give_way=give_way),
    )
    await desk.play.do(lambda tx: delete(tx, session_id, actor=owner))
    assert (await desk.refused("read_session", session=session_id)).startswith("There is no conversation ")


async def test_a_schedule_is_created_changed_paused_and_deleted_with_a_preview(desk: Desk) -> None:
    preview = await desk.ask("preview_schedule", rule="0 9 * * MON")
    assert len(preview.splitlines()) == 5
    assert all(line.startswith("Mon ") and "09:00 CE" in line for line in preview.splitlines())
    made = await desk.ask("schedule", action="add", rule="0 9 * * MON", task="Look at the mail.")
    assert made == f"Schedule 1 (Look at the mail.) runs at:\n{preview}"
    assert (await desk.ask("list_schedules")).startswith("1. Look at the mail.: 0 9 * * MON, next in ")
    changed = await desk.ask("schedule", action="change", number=1, rule="every 2h", name="mail")
    assert changed.startswith("Schedule 1 (mail) runs at:\n")
    assert await desk.ask("schedule", action="pause", number=1) == "Schedule 1 (mail) is paused."
    assert (await desk.ask("schedule", action="resume", number="1")).startswith(
        "Schedule 1 (mail) runs at:\n"
    )
    assert await desk.ask("schedule", action="change", number=1, task="And answer it.") == changed
    [(parts, route)] = await desk.play.rows("SELECT parts, route FROM schedules")
    assert (parts, route) == ('"And answer it."', "origin")
    assert await desk.ask("schedule", action="remove", number=1) == "Schedule 1 (mail) is ended."
    assert (await desk.refused("schedule", action="remove", number=1)).startswith(
        "Schedule 1 has ended for good"
    )


async def test_an_impossible_schedule_is_refused_with_a_reason(desk: Desk) -> None:
    assert "write five or six cron fields" in await desk.refused("preview_schedule", rule="whenever")
    assert "that time has passed" in await desk.refused("preview_schedule", rule="2001-01-01 09:00")
    for rule, told in (
        ("every blue moon", "give the interval"),
        ("2001-01-01 09:00", "that time has passed"),
    ):
        assert told in await desk.refused("schedule", action="add", rule=rule, task="x")
    assert "give 1 to 80 characters" in await desk.refused(
        "schedule", action="add", rule="@daily", task="x", name="n" * 81
    )
    await desk.ask("schedule", action="add", rule="@daily", task="x")
    assert "There is a schedule 'x' already" in await desk.refused(
        "schedule", action="add", rule="@daily", task="x"
    )
    assert await desk.refused("schedule", action="burn") == (
        "There is no action 'burn'. Use one of add, change, remove, pause, resume."
    )
    assert (await desk.refused("schedule", action="pause")).startswith("Give 'number'")
    assert await desk.refused("schedule", action="pause", number=9) == "There is no schedule 9 of yours."
    assert "a whole number" in await desk.refused("schedule", action="pause", number="one")
    await desk.in_group()
    assert "other people read this chat" in await desk.refused("schedule", action="remove", number=1)
    assert " (here) runs at:" in await desk.ask("schedule", action="add", rule="@daily", task="here")


async def test_a_process_elsewhere_is_listed_polled_and_waited_for_only(desk: Desk, clock: FakeClock) -> None:
    assert await desk.ask("process", action="list") == "This conversation has no background processes."
    session_id, person_id = desk.use.session_id, desk.use.person_id
    made = NewProcess(command="make all", workspace=None, host="beta", folder="there")
    number = await desk.play.do(
        lambda tx: record_started(tx, made, session_id=session_id, person_id=person_id)
    )
    clock.advance(2 * HOUR)
    elsewhere = "It runs on the machine beta; only there it can be reached."
    assert (
        await desk.ask("process", action="poll", number=number)
        == f"1. make all: running for 2 h. {elsewhere}"
    )
    assert (await desk.ask("process", action="wait", number=number, seconds=1)).startswith(
        "1. make all: running"
    )
    for action in ("log", "write", "submit", "kill", "close"):
        assert await desk.refused("process", action=action, number=number, text="x") == elsewhere
    await desk.play.do(lambda tx: record_end(tx, number, "exited", exit_code=3, output_bytes=7))
    ended = "1. make all: exited with code 3 less than a minute ago"
    assert await desk.ask("process", action="list") == ended
    waited = await desk.ask("process", action="wait", number=number, seconds=9_999)
    assert waited.startswith(
        f"Waited 180 s at most instead of 9999. {ended}, 7 bytes of output. Its output is gone"
    )
    assert "has ended (exited)" in await desk.refused("process", action="kill", number=number)
    assert "There is no action 'burn'" in await desk.refused("process", action="burn")
    assert (await desk.refused("process", action="poll")).startswith("Give 'number'")


async def test_people_see_only_their_own_processes_and_groups_only_theirs(desk: Desk) -> None:
    session_id, person_id = desk.use.session_id, desk.use.person_id
    made = NewProcess(command="make all", workspace=None)
    await desk.play.do(lambda tx: record_started(tx, made, session_id=session_id, person_id=person_id))
    mine = desk.use
    await desk.in_group()
    assert (await desk.refused("process", action="poll", number=1)).startswith("There is no process 1.")
    ben = await desk.play.meet("ben")
    desk.use = replace(mine, person_id=ben.id)
    assert (await desk.refused("process", action="poll", number=1)).startswith("There is no process 1.")
    assert (await desk.refused("process", action="list")).startswith("There is no session ")


async def test_files_are_written_and_failed_sends_reported(desk: Desk, tmp_path: Path) -> None:
    await desk.play.accept("send it")
    begun = await desk.play.begin()
    assert (
        await desk.ask("send_message", text="hi", route="origin")
        == "On its way to telegram:ana (DM with Ana)."
    )
    assert "Only the owner" in await desk.refused("send_message", text="hi", route="local")
    await desk.play.do(lambda tx: tx.run("access.set_role", person_id=desk.use.person_id, role="owner"))
    assert (
        await desk.ask("send_message", text="hi", route="local") == "On its way into the file message-k.md."
    )
    assert (tmp_path / "output" / "message-k.md").read_text() == "hi"
    assert "characters: send at most" in await desk.refused("send_message", text="x" * 20_001, route="origin")
    assert "no such chat; did you mean ana" in await desk.refused(
        "send_message", text="x", route="telegram:anna"
    )
    asking = desk.tools.find("send_to_others")
    assert asking is not None
    long = replace(desk.use, arguments={"text": "x" * 3_000, "route": "telegram:ana"})
    with pytest.raises(ToolFailed, match="must be short"):
        asking.question(long)
    with pytest.raises(ToolFailed, match="other people read this chat"):
        asking.question(replace(desk.use, audience_id=1))
    assert "No folder for files" in await desk.refused("send_to_others", text="x", route="local")
    desk.use = replace(desk.use, audience_id=1)
    assert (await desk.refused("send_message", text="x", route="telegram:anna")).startswith(
        "There is no such place"
    )
    await desk.play.finish(begun)


async def test_a_file_that_cannot_be_written_is_reported(
    database: Database, clock: FakeClock, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    desk = await Desk(database, clock, tmp_path / "file").open()
    await desk.play.do(lambda tx: tx.run("access.set_role", person_id=desk.use.person_id, role="owner"))
    await desk.play.accept("send it")
    await desk.play.begin()
    assert "The file could not be written" in await desk.refused("send_message", text="x", route="local")
