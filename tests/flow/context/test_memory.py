"""Memory through the running gateway: notes are stored and recalled, and never cross persons or audiences."""

import re

from keryx.agents.agent import Answer, Brief, Stage
from keryx.core.conversations.rules.message import NewMessage, ToolCallPart
from keryx.core.values.json_value import JsonValue
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import ToolCall, UnattendedTool
from tests.flow.running import Actor, last_text, running, said, until

CANARY = re.compile(r"canary\w+")


async def call(brief: Brief, stage: Stage, name: str, arguments: JsonValue) -> str:
    made = ToolCallPart(call_id=f"{name}-{brief.turn_id}", name=name, arguments=arguments)
    done = await stage.act(NewMessage(role="assistant", parts=(made,)))
    return str(done.results[0].output)


async def note_and_look(brief: Brief, stage: Stage) -> Answer:
    """Store the message as a note, or answer with every canary in the brief and in the recalled notes."""
    text = last_text(brief)
    if brief.messages[-1].role == "tool":  # type: ignore[union-attr]
        return said(str(brief.messages[-1].parts[0].output))  # type: ignore[union-attr]
    if text.startswith("keep "):
        return said(await call(brief, stage, "remember", {"note": text.removeprefix("keep ")}))
    found = await call(brief, stage, "recall", {"query": "canary note"})
    return said(" ".join(sorted({*CANARY.findall(f"{brief.context} {found}")})) or "nothing")


async def test_memory_never_crosses_persons_or_audiences(store: Database, platform: FakePlatform) -> None:
    chats = {"ana": ("dm", "ana"), "ben": ("dm", "ben"), "family": ("group", "ana")}

    async def talk(chat: str, text: str, *, answers: int) -> str:
        chat_type, user = chats[chat]
        before = len(platform.said_to(chat))
        platform.say(text, chat=chat, user=user, chat_type=chat_type)  # type: ignore[arg-type]
        await until(lambda: len(platform.said_to(chat)) == before + answers)
        return platform.said_to(chat)[-1]

    async with running(store, platform, Actor(note_and_look), tools=list(keryx_tools(store))) as gateway:
        for chat in chats:
            await talk(chat, f"keep note of canary{chat}", answers=1)
            await until(lambda: not gateway.turns_running)
            await talk(chat, "/approve", answers=2)
        for chat in chats:
            assert await talk(chat, "what do you know?", answers=1) == f"canary{chat}"
            shown = await talk(chat, "/memory", answers=1)
            assert CANARY.findall(shown) == [f"canary{chat}"]


async def keep_tools(brief: Brief, stage: Stage) -> Answer:
    """Run the call in the message, ``tool {json}``, in a turn in which no person can be asked."""
    tool, _, arguments = last_text(brief).partition(" ")
    note, _, number = arguments.partition(" instead of ")
    given: dict[str, JsonValue] = {"query": note} if tool == "recall" else {"note": note}
    if number:
        given["instead_of"] = int(number) if number.isdecimal() else number
    return said(await call(brief, stage, tool, given))


async def test_a_note_is_stored_once_corrected_and_found_by_its_words(
    store: Database, platform: FakePlatform
) -> None:
    tools = [tool for tool in keryx_tools(store) if tool.offer.toolset == "memory"]
    unasked = [UnattendedTool(tool) for tool in tools]
    told: list[str] = []

    async with running(store, platform, Actor(keep_tools), tools=unasked):

        async def ask(text: str) -> str:
            before = len(platform.shown)
            platform.say(text)
            await until(lambda: len(platform.shown) == before + 1)
            told.append(platform.said_to("1")[-1])
            return told[-1]

        assert await ask("remember Lives in Rome") == "Kept."
        number = re.findall(r"(\d+)\. Lives in Rome", await ask("recall rome"))[0]
        assert await ask("remember lives in rome.") == f"It is kept already, as note {number}."
        assert await ask(f"remember Lives in Oslo instead of {number}") == "Kept."
        assert await ask("recall rome") == "Nothing is remembered about that."
        assert "Lives in Oslo" in await ask("recall where does she live, oslo?")
        assert "There is no note 999" in await ask("remember x instead of 999")
        assert "must be a whole number" in await ask("remember x instead of one")


async def test_a_person_is_asked_about_a_note_and_what_it_replaces(store: Database) -> None:
    [remember] = [tool for tool in keryx_tools(store) if tool.offer.name == "remember"]
    arguments: dict[str, JsonValue] = {"note": "Lives in Oslo"}
    assert remember.offer.parameters["required"] == ["note"]

    def question(**more: JsonValue) -> str:
        use = ToolCall(arguments=arguments | more, session_id="s", person_id=1, audience_id=None, key="k")
        return remember.question(use)

    assert question() == "May I keep this note for later? 'Lives in Oslo'"
    assert question(instead_of=7).startswith("May I keep this note for later in place of note 7?")
