"""Everything a program may change: append, undo, fork, close, rename, tag, delete."""

from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

from keryx.domain.message import Message, NewMessage, Part, Role, TextPart
from keryx.domain.session import parse_close_reason
from keryx.domain.source import Source
from keryx.library.acting import Acting, parsed
from keryx.library.messages import MessageDetails, ToolCall, new_message
from keryx.store.database import Tx
from keryx.transactions import branch_session, change_session, cut_session
from keryx.transactions.append_message import Appended, append_message
from keryx.transactions.branch_session import Branched, NothingToRedo, NothingToUndo
from keryx.transactions.program_session import Wishes, create_session, ensure_session
from keryx.views.sessions import Session, get_session

T = TypeVar("T")

LIBRARY = "library"
"""The chat that sessions of programs are opened in, where no other is named."""


class Changing(Acting):
    """The calls that write; each returns when what it wrote is durable."""

    async def create_session(
        self,
        *,
        platform: str = "local",
        title: str | None = None,
        project: str | None = None,
        workspace: str | None = None,
        model: str | None = None,
    ) -> Session:
        """Open a session that no surface points to; a project that is not there is made."""
        source = Source(platform=platform, chat_id=LIBRARY, chat_type="dm")
        wishes = Wishes(title=title, project=project, workspace=workspace, model=model)

        def work(tx: Tx) -> Session:
            made = create_session(tx, self._ids, source=source, person=self._person, wishes=wishes)
            return get_session(tx, made, person_id=self._person_id)

        return await self._changed(work)

    async def session_for(self, source: Source) -> Session:
        """Return the current session of a surface, opened if there is none: the same source, the same session."""

        def work(tx: Tx) -> Session:
            found = ensure_session(tx, self._ids, source=source, person=self._person)
            return get_session(tx, found, person_id=self._person_id)

        return await self._changed(work)

    async def append(
        self,
        session_id: str,
        *,
        role: Role,
        text: str | None = None,
        parts: Sequence[Part] = (),
        tool_calls: Sequence[ToolCall] = (),
        **details: Unpack[MessageDetails],
    ) -> Appended:
        """Append a message to the active branch; raises ``SessionBusy`` while another holder's turn runs.

        A tool's result is ``role="tool"`` with ``tool_call_id`` and, as its output, ``text``.
        """
        message = new_message(role, text, parts, tool_calls, **details)
        wanted, person_id = parsed(session_id), self._person_id
        appended = await self._database.write(
            lambda tx: append_message(tx, wanted, message, person_id=person_id)
        )
        self._indexer.note()
        return appended

    async def append_all(self, session_id: str, messages: Sequence[NewMessage]) -> list[Appended]:
        """Append several messages, all of them or none."""
        wanted = self._id(session_id)
        appended = await self._database.write(
            lambda tx: [append_message(tx, wanted, each, person_id=self._person_id) for each in messages]
        )
        self._indexer.note(len(appended))
        return appended

    async def undo(self, session_id: str, *, turns: int = 1) -> Branched | NothingToUndo:
        """Take back the last turns: a branch that ends before them; nothing is deleted."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: branch_session.undo(tx, wanted, person_id=self._person_id, turns=turns)
        )

    async def redo(self, session_id: str) -> Branched | NothingToRedo:
        """Go back to what was shown before the last undo, retry or edit."""
        wanted = self._id(session_id)
        return await self._changed(lambda tx: branch_session.redo(tx, wanted, person_id=self._person_id))

    async def edit(self, session_id: str, seq: int, *, text: str) -> Branched:
        """Say something else at a message that is shown: a branch that ends before it, then the new text."""
        wanted = self._id(session_id)
        parts = (TextPart(text=text),)
        return await self._changed(
            lambda tx: branch_session.edit(tx, wanted, seq, parts, person_id=self._person_id)
        )

    async def switch_branch(self, session_id: str, no: int) -> Branched:
        """Show another branch, one of those that ``versions`` names."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: branch_session.switch_branch(tx, wanted, no, person_id=self._person_id)
        )

    async def pop(self, session_id: str) -> Message | None:
        """Take back the last message and return it; None when nothing is shown. ``redo`` brings it back."""
        wanted = self._id(session_id)
        return await self._changed(lambda tx: cut_session.pop_message(tx, wanted, person_id=self._person_id))

    async def clear(self, session_id: str) -> None:
        """Show an empty transcript; ``redo`` brings back what was shown."""
        wanted = self._id(session_id)
        await self._changed(lambda tx: cut_session.clear_messages(tx, wanted, person_id=self._person_id))

    async def fork(self, session_id: str, *, at: int | None = None, title: str | None = None) -> Session:
        """Open a session that goes on from message ``at`` (None: the last) of another one, without copying it."""
        wanted = self._id(session_id)

        def work(tx: Tx) -> Session:
            made = branch_session.fork(tx, self._ids, wanted, person=self._person, at=at, title=title)
            return get_session(tx, made, person_id=self._person_id)

        return await self._changed(work)

    async def close_session(self, session_id: str, *, reason: str = "done") -> bool:
        """Close a session and take it off every surface; say whether it was open."""
        why = parse_close_reason(reason)
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: change_session.close(tx, wanted, person_id=self._person_id, reason=why)
        )

    async def rename(self, session_id: str, title: str) -> bool:
        """Give a session a title that nothing but a person overwrites; say whether that is new."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: change_session.rename(tx, wanted, title, person_id=self._person_id)
        )

    async def pin(self, session_id: str, *, pinned: bool = True) -> bool:
        """Keep a session at the top of lists, or no longer; say whether anything changed."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: change_session.pin(tx, wanted, person_id=self._person_id, pinned=pinned)
        )

    async def archive(self, session_id: str, *, archived: bool = True) -> bool:
        """Take a session out of the lists, or put it back; say whether anything changed."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: change_session.archive(tx, wanted, person_id=self._person_id, archived=archived)
        )

    async def delete(self, session_id: str) -> bool:
        """Put a session into the bin, where it stays 30 days; say whether it was not there yet."""
        wanted = self._id(session_id)
        return await self._changed(lambda tx: change_session.delete(tx, wanted, person_id=self._person_id))

    async def restore(self, session_id: str) -> bool:
        """Take a session out of the bin; say whether it was there."""
        wanted = self._id(session_id)
        return await self._changed(lambda tx: change_session.restore(tx, wanted, person_id=self._person_id))

    async def tag(self, session_id: str, tag: str) -> bool:
        """Put a tag on a session; say whether that is new."""
        wanted = self._id(session_id)
        return await self._changed(lambda tx: change_session.tag(tx, wanted, tag, person_id=self._person_id))

    async def untag(self, session_id: str, tag: str) -> bool:
        """Take a tag off a session; say whether it was there."""
        wanted = self._id(session_id)
        return await self._changed(
            lambda tx: change_session.untag(tx, wanted, tag, person_id=self._person_id)
        )

    async def _changed(self, work: Callable[[Tx], T]) -> T:
        result = await self._database.write(work)
        self._indexer.note()
        return result
