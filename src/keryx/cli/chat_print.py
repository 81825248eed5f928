"""One question and its answer, for scripts: ``keryx --print "…"``, and standard input.

A conversation of its own, at a place of its own that is gone with the answer, so that nothing of it appears at a
terminal. Prints the answer and nothing else, and on standard error why it does not come yet; loads nothing that draws.
"""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Final

from keryx.agents.agent import Agent
from keryx.cli.chat_presence import Presence, TerminalAdapter
from keryx.cli.chat_question import ask
from keryx.cli.signals import BY_SIGNAL, ended_by
from keryx.cli.waiting import first_of
from keryx.clock import SECOND
from keryx.domain.access import Refused
from keryx.domain.inbox import Inbound
from keryx.domain.message import TextPart, text_of
from keryx.domain.source import passing_place
from keryx.errors import InvalidValue
from keryx.gateway.desk import Desk
from keryx.tools.tool import Toolbox
from keryx.transactions.accept_message import Accepted, accept_message
from keryx.transactions.cancel_item import cancel_item
from keryx.views.said import Look, Place, Since, Spoken, find_item, look, start

LOOK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 5.0
"""How long a stopped answer may take to end; whoever writes it ends it then without this process."""
WAITS: Final = 3
"""The exit code where a person must allow something first."""
NOT_ANSWERED: Final = {"failed": "That failed: {}", "cancelled": "It was stopped: {}"}


async def print_answer(
    desk: Desk, agent: Agent, toolbox: Toolbox, text: str, *, resume: str | None = None
) -> int:
    """Print the answer to ``text`` and return 0; else, with the reason on standard error, 1 or ``WAITS``.

    What does not work that was set up is told on standard error, too. SIGINT and SIGTERM stop the answer; then it
    returns what a shell expects.
    """
    # Whoever waits for one answer waits for nothing else.
    desk = replace(desk, settings=replace(desk.settings, titles=False))
    question = _Question(desk, Place(source=passing_place(desk.ids.token()), settings=desk.settings))
    adapter = TerminalAdapter(question.place.source.account, shown=_at_once)
    with ended_by(question.stop, signal.SIGINT, signal.SIGTERM):
        async with Presence(desk, agent, toolbox, place=question.place, adapter=adapter) as presence:
            try:
                answer = await question.ask(presence, text, resume=resume)
            except (InvalidValue, _NoAnswer) as reason:
                print(f"keryx: {reason}", file=sys.stderr)
                return reason.code if isinstance(reason, _NoAnswer) else 1
            finally:
                for trouble in desk.troubles():
                    print(f"keryx: {trouble}", file=sys.stderr)
    return _print(answer)


def _print(answer: str) -> int:
    try:
        print(answer, flush=True)
    except OSError as error:
        # What is still in the buffer is written at the exit, where it must not fail again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        print(f"keryx: The answer could not be written: {error.strerror}.", file=sys.stderr)
        return 1
    return 0


class _NoAnswer(Exception):
    """There is no answer, for a reason a person can read; ``code`` is the exit code that says so."""

    def __init__(self, reason: str, *, code: int = 1) -> None:
        super().__init__(reason)
        self.code = code


async def _at_once(_key: str) -> bool:
    return True


class _Question:
    """One message and what comes of it."""

    def __init__(self, desk: Desk, place: Place) -> None:
        self._desk = desk
        self.place = place
        self._since = Since(after=0)
        self._trouble: str | None = None
        self._signal: int | None = None
        self._signalled = asyncio.Event()

    def stop(self, number: int) -> None:
        """Let it be answered no more, because of a signal."""
        self._signal = number
        self._signalled.set()

    async def ask(self, presence: Presence, text: str, *, resume: str | None) -> str:
        """Return the answer, or raise ``_NoAnswer``; everything said here is recorded as sent before it does."""
        self._since = await self._desk.database.read(lambda tx: start(tx, self.place))
        try:
            if resume is not None:
                await self._resume(resume)
            accepted = await self._accept(text)
            if accepted.declined is not None:
                raise _NoAnswer(accepted.declined)
            # What a command sets going is its answer.
            return await self._answer(presence, accepted.queued or accepted.inbox_id)
        finally:
            await self._finish(presence)

    async def _resume(self, name: str) -> None:
        accepted = await self._accept(f"/resume {name}")
        if accepted.declined is not None:
            raise _NoAnswer(accepted.declined)
        place, since = self.place, self._since
        seen = await self._desk.database.read(lambda tx: look(tx, place, since))
        self._since = replace(since, seen=since.seen | {each.id for each in seen.spoken})

    async def _accept(self, text: str) -> Accepted:
        desk, place = self._desk, self.place
        inbound = Inbound(source=place.source, ref=desk.ids.token(), parts=(TextPart(text=text),))
        outcome = await desk.insist(
            lambda tx: accept_message(tx, inbound, settings=place.settings, ids=desk.ids), what="the question"
        )
        if isinstance(outcome, Refused):
            raise _NoAnswer("That was not accepted: the owner of this profile is blocked.")
        assert isinstance(outcome, Accepted), "the reference is new"
        return outcome

    async def _answer(self, presence: Presence, inbox_id: int) -> str:
        database = self._desk.database
        while True:
            change = database.change_no
            item = await database.read(lambda tx: find_item(tx, inbox_id))
            seen = await self._look(presence)
            if item.fate is not None and item.fate in NOT_ANSWERED:
                raise _NoAnswer(NOT_ANSWERED[item.fate].format(item.fate_note))
            if item.fate is not None:
                return _texts(seen.spoken, turn_id=item.turn_id)
            if self._signal is not None:
                await self._stop(presence, inbox_id, BY_SIGNAL + self._signal)
            if seen.turn is not None and seen.turn.state == "waiting":
                zone = self.place.settings.reset.default.zone
                asked = "" if seen.turn.question is None else f" {ask(seen.turn.question, zone=zone)}"
                raise _NoAnswer(
                    f"This needs a person's word first.{asked}\n"
                    f"To answer, and to read what comes of it: keryx chat --resume {item.session_id}",
                    code=WAITS,
                )
            await first_of(
                database.changed(since=change, timeout_seconds=LOOK_SECONDS), self._signalled.wait()
            )

    async def _stop(self, presence: Presence, inbox_id: int, code: int) -> None:
        """Have it answered no more, give whoever answers it time to end, and raise ``_NoAnswer``."""
        desk = self._desk
        await desk.insist(lambda tx: cancel_item(tx, inbox_id, holder=desk.ids.token()), what="the stop")
        until = desk.clock.monotonic() + int(STOP_SECONDS * SECOND)
        while desk.clock.monotonic() < until:
            change = desk.database.change_no
            item = await desk.database.read(lambda tx: find_item(tx, inbox_id))
            if item.fate is not None:
                break
            await self._look(presence)
            await desk.database.changed(since=change, timeout_seconds=LOOK_SECONDS)
        raise _NoAnswer("Stopped.", code=code)

    async def _finish(self, presence: Presence) -> None:
        """Wait until what was said here is recorded as sent: nobody else ever will."""
        database = self._desk.database
        while True:
            change = database.change_no
            seen = await self._look(presence)
            if not seen.unfinished or not presence.records:
                return
            await database.changed(since=change, timeout_seconds=LOOK_SECONDS)

    async def _look(self, presence: Presence) -> Look:
        place, since = self.place, self._since
        seen = await self._desk.database.read(lambda tx: look(tx, place, since))
        await presence.act_on(seen)
        if seen.trouble not in (None, self._trouble):
            print(f"keryx: {seen.trouble}", file=sys.stderr, flush=True)
        self._trouble = seen.trouble
        return seen


def _texts(spoken: tuple[Spoken, ...], *, turn_id: int | None = None) -> str:
    """Return what was said, by one turn or in answer to a command."""
    return "\n".join(text_of(each.parts) for each in spoken if each.turn_id == turn_id)
