"""A platform and a model that take no time, and the books that both keep of when each message came by.

Messages are numbered, and the number travels as the platform's message id and as the text, so that the books need no
knowledge of sessions. The platform keeps nothing but a queue: its own work would be measured as Keryx's.
"""

import asyncio
import time
from array import array
from collections.abc import AsyncGenerator, Callable, Sequence

from keryx.agents.agent import Answer, Brief, Stage
from keryx.clock import SECOND
from keryx.core.conversations.rules.command import Command
from keryx.core.conversations.rules.message import Message, NewMessage, TextPart, text_of
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Outcome, Sent
from keryx.core.deliveries.rules.pieces import Piece
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.platforms.adapter import Capabilities, Outgoing, Update

PLATFORM = "bench"
USER = "ana"
QUESTION = "and what do you say to this, which is about as long as a message in a chat is?"
ANSWER = (
    "That is easily said, ",
    "and it takes me no time at all, ",
    "because I am only the double of a model.",
)


class Books:
    """When each message was there to be fetched, reached the agent, had its answer's last token, and was sent."""

    def __init__(self) -> None:
        self.offered = array("d")
        self.called = array("d")
        self.told = array("d")
        self.sent = array("d")
        self.together: dict[int, list[int]] = {}
        """By the last message of a turn, all that the turn answers, where it answers several."""

    def offer(self, at: float) -> int:
        """Note that a message is there from this time on, and return its number."""
        self.offered.append(at)
        for others in (self.called, self.told, self.sent):
            others.append(0.0)
        return len(self.offered) - 1

    def of_turn(self, number: int) -> list[int]:
        """Return the messages that are answered with this one, itself included."""
        return self.together.get(number, [number])

    def before_agent(self, since: int = 0) -> list[float]:
        """Return how long each answered message took from the platform to the agent, from a number on."""
        return [
            called - offered
            for offered, called, sent in zip(
                self.offered[since:], self.called[since:], self.sent[since:], strict=True
            )
            if sent
        ]

    def after_agent(self, since: int = 0) -> list[float]:
        """Return how long each answer took from its last token to the platform, from a number on."""
        return [sent - told for told, sent in zip(self.told[since:], self.sent[since:], strict=True) if sent]

    def whole(self, since: int = 0) -> list[float]:
        """Return how long each answered message took from end to end, from a number on."""
        return [
            sent - offered
            for offered, sent in zip(self.offered[since:], self.sent[since:], strict=True)
            if sent
        ]


class Service:
    """The platform and, because it keeps no promises over a restart, its adapter in one."""

    def __init__(self, books: Books) -> None:
        self.platform = PLATFORM
        self.account: str | None = None
        # As a messenger does: whoever shows answers while they grow has a loop for that, which costs too.
        self.capabilities = Capabilities(text_max=4_096, edits=True, edit_every=SECOND)
        self.on_sent: Callable[[str], None] = lambda _chat: None
        """Told the chat whenever an answer arrives."""
        self.acknowledged = 0
        self.answered = 0
        self._books = books
        self._queue: asyncio.Queue[Inbound] = asyncio.Queue()
        self._wanted: tuple[Callable[[], bool], asyncio.Event] | None = None

    def say(self, chat: str, *, at: float | None = None) -> None:
        """Let a message be there, from now on or from an earlier time on that it was due."""
        number = self._books.offer(time.perf_counter() if at is None else at)
        source = Source(
            platform=PLATFORM,
            chat_id=chat,
            chat_type="dm",
            user_id=USER,
            user_name="Ana",
            message_id=str(number),
        )
        text = TextPart(text=f"{number} {QUESTION}")
        self._queue.put_nowait(Inbound(source=source, ref=f"{id(self)}-{number}", parts=(text,)))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that only an acknowledgement or an answer changes."""
        if not holds():
            event = asyncio.Event()
            self._wanted = (holds, event)
            await event.wait()

    def _look(self) -> None:
        if self._wanted is not None and self._wanted[0]():
            self._wanted[1].set()
            self._wanted = None

    async def connect(self) -> None:
        """The service is always there."""

    async def receive(self) -> AsyncGenerator[Update, None]:
        while True:
            yield await self._queue.get()

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:  # noqa: ARG002 - counted
        self.acknowledged += 1
        self._look()

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        return text_pieces(parts, text_max=self.capabilities.text_max, unit=self.capabilities.text_unit)

    async def send(self, outgoing: Outgoing) -> Outcome:
        now = time.perf_counter()
        assert outgoing.reply_to is not None, "every answer is one to a message"
        for number in self._books.of_turn(int(outgoing.reply_to)):
            self._books.sent[number] = now
            self.answered += 1
        self.on_sent(outgoing.to.chat_id)
        self._look()
        return Sent(message_id=outgoing.key)

    async def edit(self, outgoing: Outgoing, *, message_id: str) -> Outcome:  # noqa: ARG002 - as the contract has it
        return Sent(message_id=message_id)

    def split_chat(self, text: str) -> tuple[str, str | None]:
        return text, None

    async def offer_commands(self, commands: Sequence[Command]) -> None:
        """It has no menu."""

    async def show_typing(self, to: Address) -> None: ...

    async def close(self) -> None: ...


class InstantAgent:
    """A model that has its answer ready."""

    def __init__(self, books: Books) -> None:
        self._books = books

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        now = time.perf_counter()
        numbers = _asked(brief)
        if len(numbers) > 1:
            self._books.together[numbers[-1]] = numbers
        for number in numbers:
            self._books.called[number] = now
        for token in ANSWER:
            await stage.say(token)
        message = NewMessage(
            role="assistant",
            parts=(TextPart(text="".join(ANSWER)),),
            input_tokens=900,
            output_tokens=30,
            finish_reason="stop",
        )
        now = time.perf_counter()
        for number in numbers:
            self._books.told[number] = now
        return Answer(message=message)

    async def close(self) -> None: ...


def _asked(brief: Brief) -> list[int]:
    """Return the numbers of the messages that nobody has answered yet, oldest first."""
    numbers: list[int] = []
    for said in reversed(brief.messages):
        if not isinstance(said, Message) or said.role != "user":
            break
        numbers.append(int(text_of(said.parts).partition(" ")[0]))
    return numbers[::-1]
