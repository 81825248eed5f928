"""The terminal chat: what is typed is accepted like any message, and what the outbox says is shown.

Nothing is done in any other way than through the store, so it works alone, beside a gateway and beside other
terminals, and a chat that was killed goes on where it was. SIGTERM and SIGHUP end it as leaving does, also where the
terminal is gone. It tells nothing twice: a delivery is recorded as sent by the terminal that holds the account, after
it stands on its screen.
"""

import asyncio
import io
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal

from rich.console import Console

from keryx.agents.agent import Agent
from keryx.cli.chat_input import Input, Keyboard, Lines, quiet_keys
from keryx.cli.chat_presence import Presence, TerminalAdapter
from keryx.cli.chat_question import answer_for, ask_again
from keryx.cli.chat_screen import Screen, whole_text
from keryx.cli.chat_turn import TurnShow
from keryx.cli.signals import BY_SIGNAL, ended_by
from keryx.cli.waiting import first_of
from keryx.domain.access import Refused
from keryx.domain.inbox import Inbound
from keryx.domain.message import TextPart, preview_of, text_of
from keryx.domain.outbox import MAYBE_REPEATED_MARK
from keryx.domain.route import Address
from keryx.domain.source import LOCAL_CLI
from keryx.domain.turn import TurnId
from keryx.errors import InvalidValue, StoreUnavailable
from keryx.gateway.desk import Desk
from keryx.tools.tool import Toolbox
from keryx.transactions.accept_message import Accepted, accept_message
from keryx.views.said import (
    EndedTurn,
    Heard,
    Look,
    OpenQuestion,
    Place,
    SaidElsewhere,
    Since,
    Spoken,
    find_end,
    find_name,
    look,
    start,
)

LOOK_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 2.0
"""How long an answer that is being written may still take when the person leaves; then it waits for the next start."""
_ENDS: Final = {
    "stopped": "(stopped)",
    "failed": "(that failed; it is tried again)",
    "lost": "(interrupted; it is tried again)",
}


async def chat(
    desk: Desk,
    agent: Agent,
    toolbox: Toolbox,
    *,
    who: str,
    resume: str | None = None,
    history: Path | None = None,
) -> int:
    """Talk at this terminal until the person leaves, and return the exit code.

    ``who`` names who answers; ``resume`` a conversation to go on with; ``history`` the file that keeps what was typed.
    """
    # Who reads the keyboard writes what is shown; nothing else touches a terminal that may be gone.
    console = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty() or None, highlight=False)
    screen = Screen(console)
    room = Room(desk, screen)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    keyboard: Input = (
        Keyboard(history=history, status=lambda: room.status, interrupt=room.interrupt, above=room.turn.draw)
        if at_terminal
        else Lines()
    )
    screen.write_with(keyboard.write, redraw=keyboard.redraw)
    adapter = TerminalAdapter(room.place.source.account, shown=room.shown)
    with ended_by(room.end, signal.SIGTERM, signal.SIGHUP), _keys(room) if at_terminal else nullcontext():
        async with Presence(desk, agent, toolbox, place=room.place, adapter=adapter) as presence:
            code = await _talk(room, presence, keyboard, who=who, resume=resume)
            if at_terminal and code == 0:
                await room.say_how_to_go_on()
            await keyboard.written()
    return code if room.ended_by is None else BY_SIGNAL + room.ended_by


@contextmanager
def _keys(room: "Room") -> Iterator[None]:
    """Let Ctrl-C stop an answer also while nobody reads the keyboard, and every other key wait until somebody does."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, room.interrupt)
    try:
        with quiet_keys():
            yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _talk(room: "Room", presence: Presence, keyboard: Input, *, who: str, resume: str | None) -> int:
    """Show and accept until the input ends, or a signal comes; then finish what is under way.

    A person who leaves does not wait for answers, a script does. Returns 1, with the reason shown, where there is no
    such conversation to go on with.
    """
    room.screen.greet(who)
    await room.begin()
    if resume and not await room.say(f"/resume {resume}"):
        await presence.end_turns(0)  # what waits in another conversation is none of this call's business
        room.leave(hurried=True)
        await room.watch(presence, keyboard)
        room.close()
        return 1
    watching = asyncio.create_task(room.watch(presence, keyboard))
    reading = asyncio.create_task(_read(room, keyboard))
    ending = asyncio.create_task(room.ending.wait())
    try:
        await asyncio.wait({watching, reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, reading):
            if task.done():
                task.result()
        if not isinstance(keyboard, Keyboard) and not ending.done():
            room.leave(hurried=False)
            await asyncio.wait({watching, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await presence.end_turns(LEAVE_SECONDS)
            room.leave(hurried=True)
            await asyncio.wait({watching}, timeout=LEAVE_SECONDS)
        if watching.done():
            watching.result()
    finally:
        tasks = (watching, reading, ending)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        room.close()
    return 0


async def _read(room: "Room", keyboard: Input) -> None:
    while (text := await keyboard.read()) is not None:
        if text.strip():
            await room.say(answer_for(text, room.question))


class Room:
    """A conversation as one terminal sees it."""

    def __init__(self, desk: Desk, screen: Screen) -> None:
        self._desk = desk
        self.screen = screen
        self.place = Place(source=LOCAL_CLI, settings=desk.settings)
        self._leaving: Literal["when at rest", "now"] | None = None
        self.ending = asyncio.Event()
        self.ended_by: signal.Signals | None = None
        """The signal that ended the chat, if one did."""
        self.turn = TurnShow(screen)
        self._speech = self.turn.speech
        self._since = Since(after=0)
        self._seen: set[int] = set()
        self._look: Look | None = None
        self._own_refs: set[str] = set()
        self._questions: set[int] = set()
        self._troubles: set[str] = set()
        self._shown: dict[str, asyncio.Event] = {}
        self._is_closed = False
        self._woken = asyncio.Event()
        self._listening: tuple[str, asyncio.Task[None]] | None = None
        self._stopping: asyncio.Task[bool] | None = None

    async def begin(self) -> None:
        """Take the place from which on everything is news."""
        self._since = await self._desk.database.read(lambda tx: start(tx, self.place))
        self._seen = set(self._since.seen)

    async def say(self, text: str) -> bool:
        """Let a line be accepted, be it a message or a command; say whether it was, and a command carried out."""
        desk = self._desk
        inbound = Inbound(source=self.place.source, ref=desk.ids.token(), parts=(TextPart(text=text),))
        self._own_refs.add(inbound.ref)
        try:
            outcome = await desk.insist(
                lambda tx: accept_message(tx, inbound, settings=desk.settings, ids=desk.ids),
                what="the terminal",
            )
        except InvalidValue as error:
            self.screen.note(str(error))
            return False
        if isinstance(outcome, Refused):
            self.screen.note("That was not accepted: the owner of this profile is blocked.")
            return False
        return isinstance(outcome, Accepted) and outcome.declined is None

    def interrupt(self) -> bool:
        """Stop the running turn, if there is one; say whether there was."""
        # What is being said here is heard before the next look at the store knows of its turn.
        if self._speech.turn_id is None and (self._look is None or self._look.turn is None):
            return False
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.create_task(self.say("/stop"))
        return True

    @property
    def question(self) -> OpenQuestion | None:
        """What waits for the person's word, as far as it was shown."""
        question = None if self._look is None or self._look.turn is None else self._look.turn.question
        return question if question is not None and question.id in self._questions else None

    @property
    def status(self) -> str:
        """What goes on, in a line."""
        return " Ready." if self._look is None else f" {self.turn.status(self._look)}"

    async def watch(self, presence: Presence, keyboard: Input) -> None:
        """Show what is news, and have done what is to be done, until everything is at rest after leaving."""
        database = self._desk.database
        while True:
            since = database.change_no
            self._woken.clear()
            # Before the look: one that was under way when the input ended has not seen what was said last.
            leaving = self._leaving
            try:
                seen = await self._look_around(presence)
                await presence.act_on(seen)
            except StoreUnavailable as error:
                self.screen.note(f"The store is away: {error}")
                await self._desk.pace.sleep(LOOK_SECONDS)
                continue
            keyboard.refresh()
            keyboard.redraw()
            is_recorded = not (presence.records and seen.unfinished)
            if is_recorded and (leaving == "now" or (leaving == "when at rest" and seen.is_at_rest)):
                return
            await self._wait(since)

    def end(self, number: signal.Signals) -> None:
        """End the chat because of a signal."""
        self.ended_by = number
        self.ending.set()

    def leave(self, *, hurried: bool) -> None:
        """Watch until all is shown and recorded; unless it is ``hurried``, also until all is answered."""
        self._leaving = "now" if hurried else "when at rest"
        self._woken.set()

    async def shown(self, key: str) -> bool:
        """Return when a delivery stands on the screen; False when it never will."""
        if not self._is_closed:
            await self._shown.setdefault(key, asyncio.Event()).wait()
        return not self._is_closed

    def close(self) -> None:
        """Show nothing more."""
        self._is_closed = True
        for event in self._shown.values():
            event.set()
        if self._listening is not None:
            self._listening[1].cancel()

    async def say_how_to_go_on(self) -> None:
        """Tell the name by which the conversation is resumed."""
        session_id = None if self._look is None else self._look.session_id
        if self._look is None or session_id is None:
            return
        if self._look.queued:
            self.screen.note("What is not answered yet is answered at the next start, or by a gateway.")
        title = await self._desk.database.read(lambda tx: find_name(tx, session_id))
        named = f" ({title})" if title else ""
        self.screen.note(f"To go on: keryx chat --resume {session_id}{named}")

    async def _wait(self, since: int) -> None:
        news = self._desk.database.changed(since=since, timeout_seconds=LOOK_SECONDS)
        await first_of(news, self._woken.wait())

    async def _look_around(self, presence: Presence) -> Look:
        place, since = self.place, replace(self._since, seen=frozenset(self._seen))
        speaking = self._speech.turn_ids
        # Of one moment: a turn that has ended has its answer among what is said.
        seen, ends = await self._desk.database.read(
            lambda tx: (look(tx, place, since), [(each, find_end(tx, TurnId(each))) for each in speaking])
        )
        self._since, self._look = seen.since, seen
        if seen.session_id is not None:
            self._listen_to(seen.session_id)
        news = [each for each in seen.news if self._is_to_show(each, presence)]
        # What no turn said led to what turns call, and stands before it.
        led = list(takewhile(lambda each: isinstance(each, Heard) or each.turn_id is None, news))
        self._show_all(led)
        self.turn.see(seen)
        self._show_all(news[len(led) :])
        self._show_question(seen)
        self._show_troubles()
        if seen.turn is not None and seen.turn.said:
            self._speech.so_far(seen.turn.id, seen.turn.said)
        for turn_id, ended in ends:
            if turn_id in self._speech.turn_ids:
                self._end_speech(turn_id, ended, seen)
        return seen

    def _is_to_show(self, each: Heard | Spoken | SaidElsewhere, presence: Presence) -> bool:
        if isinstance(each, Heard):
            return each.ref not in self._own_refs
        # What this terminal records is shown once it is claimed: killed in between, it is marked the next time.
        return not (isinstance(each, Spoken) and each.state == "ready" and presence.records)

    def _show_all(self, news: Sequence[Heard | Spoken | SaidElsewhere]) -> None:
        for each in news:
            if isinstance(each, Heard):
                self._show_heard(each)
            elif isinstance(each, Spoken):
                self._show_spoken(each)
            else:
                self._speech.end(each.turn_id, whole_text(each.parts))

    def _show_question(self, seen: Look) -> None:
        """Show what waits for the person's word, unless that stands on the screen or is about to."""
        question = None if seen.turn is None else seen.turn.question
        if seen.turn is None or question is None or question.id in self._questions:
            return
        told = [each for each in seen.spoken if (each.kind, each.turn_id) == ("question", seen.turn.id)]
        if not told:
            # It was asked before this terminal was there, or elsewhere.
            self._speech.end(seen.turn.id, None)
            self.screen.tell(ask_again(question, zone=self.place.settings.reset.default.zone))
        if not told or told[-1].id in self._seen:
            self._questions.add(question.id)

    def _show_troubles(self) -> None:
        """Tell once what does not work that was set up."""
        for trouble in self._desk.troubles():
            if trouble not in self._troubles:
                self._troubles.add(trouble)
                self.screen.note(trouble)

    def _end_speech(self, turn_id: int, ended: EndedTurn, seen: Look) -> None:
        """Show the rest of what a turn said that has ended without an answer."""
        if any(each.turn_id == turn_id for each in seen.spoken):
            return  # its answer is on the way
        if ended.state in _ENDS:
            self._speech.end(turn_id, ended.text if ended.state == "stopped" else None)
            self.screen.note(_ENDS[ended.state])
        elif ended.state == "finished":
            self._speech.end(turn_id, None)

    def _show_spoken(self, spoken: Spoken) -> None:
        self._seen.add(spoken.id)
        text = whole_text(spoken.parts)
        if spoken.maybe_repeated_at is not None:
            text = f"{text}\n{MAYBE_REPEATED_MARK}" if text else MAYBE_REPEATED_MARK
        if spoken.turn_id is not None and spoken.kind in ("reply", "copy", "scheduled"):
            self._speech.end(spoken.turn_id, text)
        else:
            if spoken.turn_id is not None:
                self._speech.end(spoken.turn_id, None)  # a question comes after what led to it
            self.screen.tell(text)
        self._shown.setdefault(spoken.idempotency_key, asyncio.Event()).set()

    def _show_heard(self, heard: Heard) -> None:
        here = Address.of(heard.source) == self.place.address
        name = heard.source.user_name or heard.person or "somebody"
        where = "another terminal" if here else f"{name}, {heard.source.describe()}"
        self.screen.heard(where, text_of(heard.parts) or preview_of(heard.parts))

    def _listen_to(self, session_id: str) -> None:
        """Hear what the turns of this process say in a session, as they say it."""
        if self._listening is not None:
            if self._listening[0] == session_id:
                return
            self._listening[1].cancel()
        self._listening = (session_id, asyncio.create_task(self._listen(session_id)))

    async def _listen(self, session_id: str) -> None:
        async with self._desk.live.watch(session_id) as deltas:
            while True:
                self.turn.hear(await deltas.get())
                self.screen.redraw()
