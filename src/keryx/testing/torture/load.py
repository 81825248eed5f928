"""The load: several chats that ask several questions at once, steer and stop, until the load ends."""

import asyncio
import random
from itertools import count
from typing import Final

from keryx.core.conversations.rules.source import ChatType, Source
from keryx.core.conversations.transactions.program_sessions import enter_store
from keryx.core.conversations.views.session_list import count as count_seen
from keryx.core.people.transactions.pair_stranger import IssuedCode, approve_pairing, offer_pairing
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.platforms.webhook.wire import PLATFORM
from keryx.store.database import Tx
from keryx.testing.torture.double import PlatformDouble
from keryx.testing.torture.records import MessageKind, UserMessage
from keryx.testing.torture.texts import TRAITS, Question
from keryx.values import dataclass

OPEN_MAX: Final = 3
"""The maximum number of open questions of a chat."""
PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat and its users."""

    name: str
    canary: str
    chat_type: ChatType
    users: tuple[str, ...]


def make_chats(number: int, *, ids: Ids) -> list[Chat]:
    """Return ``number`` chats; every third is a group of two users who also have their own chats."""
    names = [f"c{no}" for no in range(number)]
    return [
        Chat(
            name=name,
            canary=f"canary-{ids.token()[:12]}",
            chat_type="group" if no % 3 == 2 else "dm",
            users=(names[no - 2], names[no - 1]) if no % 3 == 2 else (name,),
        )
        for no, name in enumerate(names)
    ]


def let_in(tx: Tx, users: set[str], *, ids: Ids) -> None:
    """Pair the users with approved requests, so that they may speak; only in an empty store."""
    owner = enter_store(tx, person_id=None)
    for number, user in enumerate(sorted(users), 1):
        source = Source(platform=PLATFORM, chat_id=user, chat_type="dm", user_id=user, user_name=user)
        offered = offer_pairing(tx, source, ids)
        # Request numbers start at 1 in an empty store.
        is_new = isinstance(offered, IssuedCode) and offered.request_no == number
        if not is_new or count_seen(tx, person_id=owner.id).sessions:
            raise InvalidValue("the database is not empty: give torture an empty database of its own")
        approve_pairing(tx, number, by=owner.id, name=user)


class Load:
    """Lets all chats send messages until the end."""

    def __init__(self, double: PlatformDouble, chats: list[Chat], *, seed: int) -> None:
        self._double = double
        self._chats = chats
        self._seed = seed
        self.may_stop = True
        """Whether chats send ``/stop`` now and then."""
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all chats."""
        for chat in self._chats:
            self._double.records.canaries[chat.name] = chat.canary
            rng = random.Random(f"{self._seed}/{chat.name}")
            self._tasks.append(asyncio.create_task(self._speak(chat, rng), name=f"torture-{chat.name}"))

    async def end(self) -> None:
        """Stop all chats after their current message; return when all messages have been accepted."""
        self._ended.set()
        await asyncio.gather(*self._tasks)

    async def abort(self) -> None:
        """Stop all chats at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _speak(self, chat: Chat, rng: random.Random) -> None:
        for no in count(1):
            await self._wait_for_room(chat)
            if self._ended.is_set():
                return
            kind: MessageKind = rng.choices(("message", "steer", "stop"), weights=(80, 14, 6))[0]
            if kind == "stop" and not self.may_stop:
                kind = "message"
            token = "" if kind == "stop" else f"{chat.name}-{no}"
            message = UserMessage(id=f"msg_{chat.name}-{no}", chat=chat.name, no=no, kind=kind, token=token)
            said = {"chat_type": chat.chat_type, "user": rng.choice(chat.users)}
            await self._double.send(message, {**said, "text": self._text(chat, message, rng)})
            await self._pause(rng.choice((0.0, 0.05, rng.uniform(0.1, 0.8))))

    def _text(self, chat: Chat, message: UserMessage, rng: random.Random) -> str:
        if message.kind == "stop":
            return "/stop"
        traits = tuple(trait for trait in TRAITS if rng.randrange(100) < _PERCENT[trait])
        text = Question(token=message.token, canary=chat.canary, traits=traits).text()
        return f"!steer {text}" if message.kind == "steer" else text

    async def _wait_for_room(self, chat: Chat) -> None:
        """Wait while the chat has too many open questions, up to a limit: stopped questions never get an answer."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while self._double.records.count_open(chat.name) >= OPEN_MAX and not self._ended.is_set():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self._double.shown.wait(), min(left, 0.5))
            except TimeoutError:
                continue

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return


_PERCENT: Final = {"once": 30, "pure": 20, "long": 8, "slow": 15}
"""The percentage of questions with this trait."""
