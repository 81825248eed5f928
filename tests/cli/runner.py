"""Run a chat, a printed answer or a gateway in its own process: ``python -m tests.cli.runner TASK ADDRESS …``."""

import argparse
import asyncio
import os
import re
import sys
from pathlib import Path

from keryx.agents.agent import Agent, Answer, Brief, Stage
from keryx.agents.model.guide import Guide
from keryx.clock import SystemClock
from keryx.config import Settings
from keryx.core.conversations.rules.message import Message, NewMessage, TextPart, ToolCallPart, text_of
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import AgentFailed
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.subprocesses.run_program import Program, run_program
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.keryx.plugin import keryx_tools
from keryx.tools.tool import Toolbox, ToolCall

BEGINNING = "# The herald\n\nOnce there was a herald.\n\nHe spoke "
ENDING = "to kings.\n"
LOOK_SECONDS = 0.02


class Storyteller:
    """An agent that tells a story whose end waits until a file exists, and that fails or runs a command on request."""

    def __init__(self, gate: Path) -> None:
        self._gate = gate

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        last = brief.messages[-1]
        asked = text_of(last.parts) if isinstance(last, Message) else ""
        if asked.startswith("fail"):
            raise AgentFailed("there is no more paper")
        if asked.startswith("run"):
            call = ToolCallPart(
                call_id="c", name="shell", arguments={"command": asked.removeprefix("run").strip()}
            )
            await stage.act(NewMessage(role="assistant", parts=(call,)))
        if not asked.startswith("tell"):
            return _said(f"You said: {asked}")
        for piece in re.findall(r"\S+\s*", BEGINNING):
            await stage.say(piece)
        while not self._gate.exists():
            await asyncio.sleep(LOOK_SECONDS)
            await stage.say("")
        await stage.say(ENDING)
        return _said(BEGINNING + ENDING)

    async def close(self) -> None:
        pass


class Shell(BaseTool):
    """Runs a command without an approval."""

    name = "shell"
    description = "Run a command."
    effect: StepEffect = "once"
    parameters = {"command": Parameter(help="The command", required=True)}  # noqa: RUF012 - never changed

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:  # noqa: ARG002
        arguments = ["sh", "-c", given.text("command")]
        program = Program(
            arguments=arguments, folder=Path.cwd(), environment={"PATH": os.environ["PATH"]}, seconds=600
        )
        return (await run_program(program)).output


def _said(text: str) -> Answer:
    return Answer(message=NewMessage(role="assistant", parts=(TextPart(text=text),)))


def make_runtime(database: Database, *, settings: Settings | None = None) -> Runtime:
    """Return a runtime for this process."""
    ids = Ids()
    return Runtime(
        database=database,
        settings=settings or Settings(),
        ids=ids,
        clock=SystemClock(),
        holder=ids.token(),
        platforms=frozenset({"local"}),
    )


def make_agent(gate: Path | None) -> Agent:
    """Return the guide, or, with a gate, a storyteller."""
    return Guide() if gate is None else Storyteller(gate)


async def serve(runtime: Runtime, agent: Agent, toolbox: Toolbox) -> int:
    """Run a gateway until the input ends."""
    gateway = Gateway(runtime, agent, toolbox, [])
    await gateway.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await gateway.stop(seconds=1)
    return 0


async def main() -> int:
    """Run the task of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["chat", "print", "serve"])
    parser.add_argument("address")
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--resume")
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--history", type=Path)
    given = parser.parse_args()
    database = open_database(given.address)
    try:
        runtime, agent = make_runtime(database), make_agent(given.gate)
        toolbox = Toolbox([*keryx_tools(database), Shell()])
        if given.task == "serve":
            return await serve(runtime, agent, toolbox)
        if given.task == "print":
            from keryx.cli.chat.print_answer import print_answer  # noqa: PLC0415 - a test sees what it loads

            code = await print_answer(runtime, agent, toolbox, given.text, resume=given.resume)
            loaded = {"prompt_toolkit", "rich"} & {name.partition(".")[0] for name in sys.modules}
            assert not loaded, loaded
            return code
        from keryx.cli.chat.chat import chat  # noqa: PLC0415

        return await chat(
            runtime, agent, toolbox, agent_name="The guide", resume=given.resume, history=given.history
        )
    finally:
        await database.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
