"""A store in which people talk to an agent, step by step; after every step the invariants must hold."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar
from weakref import WeakSet

from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.conversations.rules.message import Message, text_message, text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, messages, sessions
from keryx.core.deliveries.tables import outbox
from keryx.core.people.rules.access import Refused
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import access, people
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions.accept_message import Accepted, Duplicate, accept_message
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.views.pending_work import list_ready
from keryx.core.upkeep.transactions.recover import Recovered, recover
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.core.values.role import Role
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx, Row, Tx
from keryx.store.statements import TOPICS, Dialect, Topic, load, parse
from keryx.testing.builders import dm, inbound
from keryx.testing.clock import FakeClock

T = TypeVar("T")
_NUMBERS = count(1)
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
CHECKED_LATER: WeakSet[Database] = WeakSet()
"""Stores in which the end of the test must find nothing broken."""


@dataclass(kw_only=True)
class Stage:
    """Short ways to let things happen, and to look at what became of them."""

    database: Database
    clock: FakeClock
    ids: Ids = field(default_factory=lambda: Ids(seed=7))
    settings: Settings = field(default_factory=lambda: Settings(welcome=None))

    async def do(self, work: Callable[[Tx], T]) -> T:
        """Run a transaction, and see that nothing is broken after it, and that whoever has to do with it is woken.

        On PostgreSQL that is seen when the test is over: a look takes it as long as ten transactions do.
        """
        if self.database.dialect != "sqlite":
            CHECKED_LATER.add(self.database)
            return await self.database.write(work)
        outcome = await self.database.write(_waking(work))
        await self.check()
        return outcome

    async def check(self) -> None:
        """See that nothing is broken."""
        assert await self.database.read(check_invariants) == []

    async def look(self, work: Callable[[ReadTx], T]) -> T:
        """Read something."""
        return await self.database.read(work)

    def set(self, **settings: object) -> None:
        """Go on under other settings."""
        self.settings = replace(self.settings, **settings)  # type: ignore[arg-type]

    async def meet(self, user: str = "ana", *, platform: str = "telegram", role: Role = "member") -> Person:
        """Let in a user of a platform as a person of their own."""

        def let_in(tx: Tx) -> Person:
            person = people.add_person(tx, name=user.title(), role=role)
            access.add_identity(tx, dm(user, platform=platform), person_id=person.id, user_id=user)
            people.mark_welcomed(tx, person.id)
            return person

        return await self.do(let_in)

    async def hear(
        self, text: str, *, source: Source | None = None, ref: str | None = None
    ) -> Accepted | Duplicate | Refused:
        """Let a platform deliver a text."""
        message = inbound(text, source=source or dm(), ref=ref)
        return await self.do(
            lambda tx: accept_message(tx, message, settings=self.settings, ids=self.ids, commands=COMMANDS)
        )

    async def accept(self, text: str, *, source: Source | None = None, ref: str | None = None) -> Accepted:
        """Let a platform deliver a text that must be accepted."""
        outcome = await self.hear(text, source=source, ref=ref)
        assert isinstance(outcome, Accepted), outcome
        return outcome

    async def begin(self, *, holder: str = "gateway") -> BegunTurn:
        """Begin the next turn, which there must be."""
        begun = await self.begin_if_any(holder=holder)
        assert begun is not None
        return begun

    async def begin_if_any(self, *, holder: str = "gateway") -> BegunTurn | None:
        """Begin the next turn, if there is one."""
        return await self.do(lambda tx: begin_turn(tx, holder=holder))

    async def finish(self, begun: BegunTurn, text: str | None = "yes", **reply: object) -> None:
        """Finish a turn with a text."""
        message = None if text is None else text_message("assistant", text)
        made = Reply(message=message, **reply)  # type: ignore[arg-type]
        await self.do(lambda tx: finish_turn(tx, begun.held, reply=made, ids=self.ids))

    async def exchange(self, text: str, answer: str = "yes", *, source: Source | None = None) -> SessionId:
        """Let something be said and answered; return the session."""
        accepted = await self.accept(text, source=source)
        await self.finish(await self.begin(), answer)
        return accepted.session_id

    async def lose_holder(self) -> None:
        """Let whoever runs a turn be gone, and their lease run out."""
        self.clock.advance(LEASE_TIME + 1)
        await self.check()

    async def recover(self, *, deduplicating: frozenset[str] = frozenset()) -> Recovered:
        """Take up what was left."""
        return await self.do(
            lambda tx: recover(tx, ids=self.ids, settings=self.settings, deduplicating=deduplicating)
        )

    async def item(self, inbox_id: int) -> inbox.InboxItem:
        """Return an inbox item."""
        found = await self.look(lambda tx: inbox.find_item(tx, inbox_id))
        assert found is not None
        return found

    async def fate(self, accepted: Accepted) -> str | None:
        """Return what became of a message."""
        return (await self.item(accepted.inbox_id)).fate

    async def turn(self, begun: BegunTurn) -> turns.Turn:
        """Return a turn as it is now."""
        return await self.look(lambda tx: turns.get_turn(tx, begun.turn_id))

    async def step(self, begun: BegunTurn, call_id: str) -> turns.Step:
        """Return a call of a turn as it is now."""
        return await self.look(lambda tx: turns.get_step(tx, turn_id=begun.turn_id, call_id=call_id))

    async def session(self, session_id: str) -> sessions.Session:
        """Return a session as it is now."""
        return await self.look(lambda tx: sessions.get_session(tx, session_id))

    async def transcript(self, session_id: str) -> list[Message]:
        """Return what a session shows."""

        def read(tx: ReadTx) -> list[Message]:
            session = sessions.get_session(tx, session_id)
            path = branches.list_path(tx, session_id=session_id, branch_no=session.active_branch_no)
            return [message for segment in path for message in messages.list_range(tx, segment)]

        return await self.look(read)

    async def texts(self, session_id: str) -> list[str]:
        """Return what was said in a session, without calls and results."""
        return [message.text for message in await self.transcript(session_id) if message.text]

    async def deliveries(self, platform: str = "telegram") -> list[outbox.Delivery]:
        """Return everything queued for a platform, sent or not, oldest first."""
        rows = await self.rows(f"SELECT id FROM outbox WHERE platform = '{platform}' ORDER BY id")
        return await self.look(lambda tx: [outbox.get_delivery(tx, number) for (number,) in rows])

    async def said(self, platform: str = "telegram") -> list[tuple[str, str]]:
        """Return the addresses and texts of everything queued for a platform, oldest first."""
        return [(each.address, text_of(each.parts)) for each in await self.deliveries(platform)]

    async def rows(self, sql: str) -> list[Row]:
        """Read whatever a test has to see."""
        [rows] = await self.rows_of(sql)
        return rows

    async def rows_of(self, *texts: str) -> list[list[Row]]:
        """Read several things of one moment."""
        with ExitStack() as stack:
            # Several may look at the same time, each with statements of its own.
            names = [f"test.look_{next(_NUMBERS)}" for _ in texts]
            for name, sql in zip(names, texts, strict=True):
                stack.enter_context(statement(name, sql))
            return await self.look(lambda tx: [tx.rows(name) for name in names])

    async def tamper(self, sql: str) -> None:
        """Break the rows as no transaction of ours does."""
        with statement("test.tamper", sql):
            await self.database.write(lambda tx: tx.run("test.tamper"))
        CHECKED_LATER.discard(self.database)


def _waking(work: Callable[[Tx], T]) -> Callable[[Tx], T]:
    """Return ``work`` that also sees that whoever has more to do by it is woken."""

    def run(tx: Tx) -> T:
        before = _work_there_is(tx)
        outcome = work(tx)
        after = _work_there_is(tx)
        asleep = {topic for topic in TOPICS if after[topic] - before[topic]} - tx.wakes
        assert not asleep, f"there is more to do for {asleep}, and no statement says that it wakes them"
        return outcome

    return run


def _work_there_is(tx: ReadTx) -> dict[Topic, set[object]]:
    """Return what the loops of a gateway would find to do now."""
    with statement(
        "test.list_accounts", "SELECT DISTINCT platform, account FROM outbox WHERE state = 'ready'"
    ):
        accounts = tx.rows("test.list_accounts")
    due = [
        delivery.id
        for platform, account in accounts
        for delivery in outbox.list_due(tx, platform=platform, account=account, limit=1_000)
    ]
    return {"turns": set(list_ready(tx, limit=1_000)), "deliveries": set(due)}


@contextmanager
def statement(name: str, sql: str) -> Iterator[None]:
    """Let the stores know another statement for a while, or one by another text."""
    before = {dialect: load(dialect).get(name) for dialect in DIALECTS}
    for dialect in DIALECTS:
        [load(dialect)[name]] = parse(f"-- name: {name}\n-- For a test.\n{sql}", dialect=dialect)
    try:
        yield
    finally:
        for dialect, original in before.items():
            if original is None:
                del load(dialect)[name]
            else:
                load(dialect)[name] = original


class Meanwhile:
    """A hook by which something else happens, once, right before a statement: a race with a known outcome."""

    def __init__(self, statement: str) -> None:
        self._statement = statement
        self._loop = asyncio.get_running_loop()
        self.work: Callable[[], Coroutine[object, object, object]] | None = None

    def __call__(self, name: str) -> None:
        """Let it happen, if this is the statement."""
        if name == self._statement and self.work is not None:
            work, self.work = self.work, None
            asyncio.run_coroutine_threadsafe(work(), self._loop).result(timeout=10)
