"""A program that is run for each turn: plain text, JSON lines with calls, failures, and being stopped."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from keryx.agents.agent import Answer, Brief, StepDone
from keryx.agents.briefing import CommandFormat
from keryx.agents.command.agent import CommandAgent
from keryx.clock import SECOND
from keryx.core.context.rules.cover import Cover
from keryx.core.conversations.rules.message import (
    MediaPart,
    NewMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    text_message,
    text_of,
)
from keryx.core.conversations.rules.source import Source
from keryx.errors import AgentFailed
from keryx.subprocesses.start_program import ProgramSettings
from tests.unit.agents.stage import Noted, brief, message

PRELUDE = """
import json, os, sys
def read(): return json.loads(sys.stdin.readline())
def write(**line): print(json.dumps(line), flush=True)
"""


def agent_of(
    folder: Path, program: str, speaks: CommandFormat = "text", *, silence_seconds: float = 60
) -> CommandAgent:
    settings = ProgramSettings(
        command=(sys.executable, "-S", "-c", PRELUDE + program), folder=folder, environment={"OWN": "kept"}
    )
    return CommandAgent(settings, speaks=speaks, profile="work", silence_seconds=silence_seconds)


async def answer_of(
    folder: Path,
    program: str,
    speaks: CommandFormat = "text",
    *,
    asked: Brief | None = None,
    stage: Noted | None = None,
) -> Answer:
    agent = agent_of(folder, program, speaks)
    try:
        async with asyncio.timeout(60):
            return await agent.run(asked or brief(), stage or Noted())
    finally:
        await agent.close()


async def reason_of(folder: Path, program: str, speaks: CommandFormat = "text") -> AgentFailed:
    with pytest.raises(AgentFailed) as failed:
        await answer_of(folder, program, speaks)
    return failed.value


def said(answer: Answer) -> str:
    assert answer.message is not None
    return text_of(answer.message.parts)


async def test_a_program_reads_the_last_message_and_its_output_is_the_answer(tmp_path: Path) -> None:
    stage = Noted()
    program = """
sys.stdout.buffer.write("Ünd ".encode()[:1]); sys.stdout.flush()
sys.stdout.buffer.write("Ünd ".encode()[1:]); print(sys.stdin.read().upper())
"""
    group = Source(platform="telegram", chat_id="1", chat_type="group")
    asked = message(3, "user", TextPart(text="and now?"))._replace(author="Ana")
    past = (message(1, "user", TextPart(text="before")), message(2, "assistant", TextPart(text="yes")))
    answer = await answer_of(tmp_path, program, asked=brief(*past, asked, source=group), stage=stage)
    assert said(answer) == 'Ünd "ANA" SAYS: AND NOW?'
    assert "".join(stage.said) == said(answer) + "\n"
    assert stage.asked[0].model == f"command:{Path(sys.executable).name}"


async def test_a_program_gets_the_variables_of_its_turn_and_no_others_of_ours(tmp_path: Path) -> None:
    program = "print(json.dumps([dict(os.environ), os.getcwd()]))"
    variables, folder = json.loads(said(await answer_of(tmp_path / "work", program)))
    own = {name: value for name, value in variables.items() if name.startswith(("KERYX", "OWN"))}
    assert own == {
        "OWN": "kept",
        "KERYX_PROFILE": "work",
        "KERYX_SESSION_ID": "s",
        "KERYX_TURN_ID": "1",
        "KERYX_PLATFORM": "local",
    }
    assert folder == str(tmp_path / "work")


@pytest.mark.parametrize(
    ("program", "speaks", "reason"),
    [
        ("sys.exit('first\\nno paper\\n')", "text", "ended with code 1: no paper"),
        ("os.kill(os.getpid(), 9)", "text", "was ended by signal 9: it gave no reason."),
        ("sys.stderr.write('torn'); sys.exit(2)", "jsonl", "ended with code 2: torn"),
        ("print()", "text", "gave an empty answer."),
        ("print('hello')", "jsonl", "wrote a line that is not a JSON object"),
        ("write(type='sing')", "jsonl", "wrote a line of type 'sing'"),
        ("write(type='tools', calls=[{'id': 1}])", "jsonl", "made a call that lacks something"),
        ("write(type='tools', calls=[])", "jsonl", "wrote a line of calls without any"),
        ("write(type='usage', input_tokens=-1)", "jsonl", "reported an impossible value"),
        ("write(type='failed')", "jsonl", "gave no reason"),
    ],
)
async def test_failures_are_reported_in_readable_sentences(
    tmp_path: Path, program: str, speaks: CommandFormat, reason: str
) -> None:
    assert reason in (await reason_of(tmp_path, program, speaks)).reason


async def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    agent = CommandAgent(ProgramSettings(command=("/nowhere/it",), folder=tmp_path))
    with pytest.raises(AgentFailed, match="'it' that should answer cannot be started"):
        await agent.run(brief(), Noted())


async def test_a_program_may_request_a_retry(tmp_path: Path) -> None:
    failure = await reason_of(
        tmp_path, "write(type='failed', reason='busy\\nnow', retry_after_seconds=2)", "jsonl"
    )
    assert (failure.reason, failure.retry_after) == ("busy now", 2 * SECOND)


async def test_a_jsonl_program_reads_the_brief_and_its_calls_run(tmp_path: Path) -> None:
    program = """
brief = read()
write(type="thinking", text="hm"); write(type="text", text="I look.")
write(type="tools", calls=[{"id": "a", "name": "look", "arguments": {"at": "it"}}, {"id": "b", "name": "look"}])
results = read()
write(type="text", text=json.dumps([brief, results]))
write(type="usage", input_tokens=7, output_tokens=2)
"""
    stage = Noted(joined=(text_message("user", "quick!"),))
    cover = Cover(
        session_id="s",
        no=1,
        branch_no=0,
        first_seq=1,
        last_seq=2,
        summary="Greetings.",
        tokens_before=9,
        tokens_after=3,
        created_at=0,
    )
    call = ToolCallPart(call_id="x", name="look", arguments={})
    past = (
        cover,
        message(3, "assistant", call),
        message(4, "tool", ToolResultPart(call_id="x", name="look", output=1)),
        message(
            5, "user", TextPart(text="and?"), MediaPart(media_type="image/png", url="http://x/y", name="y")
        ),
    )
    answer = await answer_of(tmp_path, program, "jsonl", asked=brief(*past), stage=stage)
    assert answer.message is not None
    told, results = json.loads(said(answer))
    assert (answer.message.input_tokens, answer.message.output_tokens) == (7, 2)
    (step,) = stage.steps
    assert isinstance(step.parts[0], ThinkingPart)
    assert [type(part).__name__ for part in step.parts[1:]] == ["TextPart", "ToolCallPart", "ToolCallPart"]
    assert results == {
        "type": "results",
        "results": [
            {"id": "a", "name": "look", "output": "seen", "is_error": False},
            {"id": "b", "name": "look", "output": "seen", "is_error": False},
        ],
        "joined": ["quick!"],
    }
    assert (told["type"], told["version"], told["text"], told["role"]) == ("brief", 1, "and?\n[y]", "owner")
    assert told["tools"][0]["name"] == "look"
    assert told["messages"] == [
        {"role": "summary", "text": "Greetings."},
        {
            "role": "assistant",
            "text": "",
            "author": None,
            "calls": [{"id": "x", "name": "look", "arguments": {}}],
        },
        {
            "role": "tool",
            "text": "",
            "author": None,
            "results": [{"id": "x", "name": "look", "output": 1, "is_error": False}],
        },
        {
            "role": "user",
            "text": "and?",
            "author": None,
            "media": [{"type": "image/png", "name": "y", "url": "http://x/y"}],
        },
    ]


def is_alive(pid: str) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().split()[2] != "Z"


async def test_a_stopped_program_ends_with_its_child_processes(tmp_path: Path) -> None:
    program = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-S", "-c", deaf], stdout=subprocess.PIPE)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
child.wait()
"""
    stage = Noted()
    running = asyncio.create_task(answer_of(tmp_path, program, stage=stage))
    async with asyncio.timeout(30):
        while not stage.said:  # noqa: ASYNC110 - the stage has no event
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(30):
        while any(map(is_alive, "".join(stage.said).split())):  # noqa: ASYNC110 - the system's processes
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("program", "speaks"),
    [
        ("print('a', flush=True); import time; time.sleep(60)", "text"),
        ("write(type='text', text='a'); import time; time.sleep(60)", "jsonl"),
        ("os.write(1, b'a'); os.close(1); import time; time.sleep(60)", "text"),
    ],
)
async def test_a_silent_program_is_ended_and_reported(
    tmp_path: Path, program: str, speaks: CommandFormat
) -> None:
    agent = agent_of(tmp_path, program, speaks, silence_seconds=0.5)
    with pytest.raises(AgentFailed, match=r"wrote nothing for 0\.5 s and was ended; agent\.timeout_seconds"):
        await agent.run(brief(), Noted())


async def test_the_time_of_its_calls_does_not_count_as_silence(tmp_path: Path) -> None:
    class Slow(Noted):
        async def act(self, step: NewMessage) -> StepDone:
            await asyncio.sleep(1.2)  # longer than it may be silent
            return await super().act(step)

    # A shell, because it starts in no time on a busy machine.
    calls = json.dumps({"type": "tools", "calls": [{"id": "a", "name": "look"}]})
    done = json.dumps({"type": "text", "text": "done"})
    program = f"read brief; echo '{calls}'; read results; echo '{done}'"
    settings = ProgramSettings(command=("/bin/sh", "-c", program), folder=tmp_path)
    answer = await CommandAgent(settings, speaks="jsonl", silence_seconds=1.0).run(brief(), Slow())
    assert said(answer) == "done"


async def test_a_turn_that_answers_nobody_starts_nothing(tmp_path: Path) -> None:
    answer = await answer_of(tmp_path, "open('started', 'w')", asked=brief(purpose="flush"))
    assert answer == Answer(message=None, silent=True)
    assert not (tmp_path / "started").exists()
