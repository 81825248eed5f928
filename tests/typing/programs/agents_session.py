"""An agent of the OpenAI Agents SDK that remembers through Keryx."""

from agents import Agent, Runner
from agents.memory import Session

import keryx
from keryx.integrations.openai_agents import KeryxSession


def session_of(kx: keryx.Keryx, name: str) -> Session:
    """Return a session as the SDK names the type."""
    return KeryxSession(name, kx)


async def ask(kx: keryx.Keryx, name: str, question: str) -> str:
    """Ask the agent in a conversation of its own."""
    result = await Runner.run(Agent(name="guide"), question, session=session_of(kx, name))
    return str(result.final_output)


async def main(address: str) -> None:
    """Use the session as the SDK does."""
    async with keryx.open(address) as kx:
        session = session_of(kx, "ana")
        await session.add_items([{"role": "user", "content": "hello"}])
        assert await session.get_items() == [{"role": "user", "content": "hello"}]
