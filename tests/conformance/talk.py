"""Conversations to test with: who speaks where, what was said, and what must hold whatever was done."""

from dataclasses import dataclass

from keryx.core.conversations.rules.branch import Segment, path
from keryx.core.conversations.rules.message import Message, NewMessage, Role, TextPart, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import branches, feed, messages, session_keys, sessions
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.open_session import open_session
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.tables import inbox
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.ids import Ids
from keryx.store.database import Database, ReadTx, Tx

PHONE = Source(platform="telegram", chat_id="7", chat_type="dm", user_id="7", user_name="Ana")
FAMILY = Source(platform="telegram", chat_id="-1", chat_type="group", chat_name="Family", user_id="7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One store, its owner, and short ways to let things happen in it."""

    database: Database
    ids: Ids
    owner: Person

    @classmethod
    async def begin(cls, database: Database, ids: Ids) -> "Talk":
        """Open a store for its owner, who is known on Telegram too."""

        def meet(tx: Tx) -> Person:
            owner = people.ensure_owner(tx)
            tx.run(
                "people.add_identity",
                platform="telegram",
                account="",
                user_id="7",
                person_id=owner.id,
                name="Ana",
            )
            people.mark_welcomed(tx, owner.id)
            return owner

        return cls(database=database, ids=ids, owner=await database.write(meet))

    async def stranger(self, name: str = "Ben") -> Person:
        """Somebody else, a member."""
        return await self.database.write(lambda tx: people.add_person(tx, name=name, role="member"))

    async def session(self, *texts: str, key: str | None = None, source: Source = LOCAL_CLI) -> SessionId:
        """A session in which these were said: by the user, then the assistant, and so on."""
        return await self.session_of(self.owner, *texts, key=key, source=source)

    async def session_of(
        self, person: Person, *texts: str, key: str | None = None, source: Source = LOCAL_CLI
    ) -> SessionId:
        """The same of somebody else."""
        session_id = await self.database.write(
            lambda tx: open_session(
                tx, self.ids, source=source, owner=person, key=None if key is None else SessionKey(key)
            )
        )
        for place, text in enumerate(texts):
            await self.append(session_id, "assistant" if place % 2 else "user", text, person=person)
        return session_id

    async def broken(self) -> list[object]:
        """What of the invariants does not hold."""
        return list(await self.database.read(check_invariants))

    async def say(self, session_id: SessionId, *texts: str) -> None:
        """Go on in turns, the user first."""
        for place, text in enumerate(texts):
            await self.append(session_id, "assistant" if place % 2 else "user", text)

    async def append(
        self, session_id: SessionId, role: Role, text: str, *, person: Person | None = None
    ) -> int:
        """Append one message and return its number."""
        message = NewMessage(
            role=role, parts=(TextPart(text=text),), input_tokens=2, output_tokens=1, cost_micros=3
        )
        appended = await self.database.write(
            lambda tx: append_message(tx, session_id, message, person_id=(person or self.owner).id)
        )
        return appended.seq

    async def ask(self, session_id: SessionId, text: str, *, ref: str, source: Source = LOCAL_CLI) -> int:
        """Let something wait in a session to be answered; return its number."""
        return await self.database.write(
            lambda tx: inbox.add_item(
                tx,
                session_id=session_id,
                kind="message",
                source=source,
                ref=ref,
                parts=(TextPart(text=text),),
                person_id=self.owner.id,
            )
        )

    async def turn(self, session_id: SessionId) -> BegunTurn:
        """Begin the turn that waits in a session."""
        begun = await self.database.write(lambda tx: begin_turn(tx, holder="gateway", session_id=session_id))
        assert begun is not None
        return begun

    async def answer(self, session_id: SessionId, text: str) -> None:
        """Run the turn that waits in a session to its end."""
        begun = await self.turn(session_id)
        reply = Reply(message=text_message("assistant", text))
        await self.database.write(lambda tx: finish_turn(tx, begun.held, reply=reply, ids=self.ids))

    async def record(self, session_id: SessionId) -> sessions.Session:
        """The session's row."""
        return await self.database.read(lambda tx: sessions.get_session(tx, session_id))

    async def texts(self, session_id: SessionId) -> list[str]:
        """What the session shows; checks on the way that everything kept about it adds up."""
        return [message.text for message in await self.database.read(lambda tx: _checked(tx, session_id))]

    async def facts(self, session_id: SessionId) -> list[str]:
        """The kinds of the session's facts in order; checks that none is missing."""
        events = await self.database.read(
            lambda tx: feed.list_of_session(tx, session_id=session_id, after_number=0, limit=10_000)
        )
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        return [event.kind for event in events]

    async def key_of(self, session_id: SessionId) -> list[str]:
        """The keys that point to the session."""
        return [
            record.key
            for record in await self.database.read(lambda tx: session_keys.list_keys(tx, session_id))
        ]


def shown_messages(tx: ReadTx, session_id: str) -> list[Message]:
    """Return the messages of the active branch, oldest first."""
    session = sessions.get_session(tx, session_id)
    known = branches.list_branches(tx, session_id)
    return [
        message
        for segment in path(known, session_id=session_id, no=session.active_branch_no)
        for message in messages.list_range(tx, segment)
    ]


def _checked(tx: ReadTx, session_id: str) -> list[Message]:
    shown = shown_messages(tx, session_id)
    session = sessions.get_session(tx, session_id)
    assert session.message_count == len(shown)
    assert [message.seq for message in shown] == sorted({message.seq for message in shown})
    own = [
        message
        for no in range(session.last_branch_no + 1)
        for message in messages.list_range(tx, Segment(session_id=session_id, branch_no=no, first_seq=0))
    ]
    assert session.message_total == len(own)
    assert session.input_tokens == sum(message.input_tokens for message in own)
    assert session.cost_micros == sum(message.cost_micros for message in own)
    assert all(message.seq <= session.last_seq for message in own)
    return shown
