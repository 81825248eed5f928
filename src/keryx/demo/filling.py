"""Fill a new store with sample conversations, so that every list and screen has content.

All rows come from the transactions that people and gateways use; the same ``now`` and seed give the same store.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from keryx.clock import DAY, HOUR, MINUTE, SECOND, Micros
from keryx.core.context.transactions.cover_messages import Summary, cover
from keryx.core.context.transactions.manage_memory import remember
from keryx.core.conversations.rules.message import TextPart, text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.transactions import change_session
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.manage_project import Project, ProjectPlan, create_project
from keryx.core.conversations.transactions.program_sessions import (
    SessionOptions,
    create_session,
    enter_store,
)
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.conversations.views.session_list import count, get_session
from keryx.core.deliveries.rules.route import ORIGIN, Address
from keryx.core.people.rules.person import Person
from keryx.core.people.transactions.link_accounts import Linked, enter_link, offer_link
from keryx.core.people.transactions.pair_stranger import IssuedCode, approve_pairing, offer_pairing
from keryx.core.processes.transactions.record_process import (
    NewProcess,
    record_end,
    record_spawned,
    record_started,
)
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.rules.timing import next_fires, parse_rule
from keryx.core.schedules.transactions.fire_schedule import Fired, fire_schedule
from keryx.core.schedules.transactions.manage_schedule import Scheduled, create_schedule, pause_schedule
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.values.time_zone import datetime_of, zone_of
from keryx.demo import conversations as sample
from keryx.demo.player import SETTINGS, DemoClock, Player
from keryx.demo.script import Fork, SampleConversation, SampleExchange, SampleProcess
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.store.opening import open_database
from keryx.values import dataclass

SEED: Final = 1453
ZONE: Final = "UTC"
BEGINS_AGO: Final[Micros] = 22 * DAY
PROJECTS: Final = {"Rome in spring": "#c2410c", "Herald": "#0369a1"}
MORNING: Final = "0 7 * * *"
MORNING_AGO: Final[Micros] = 6 * DAY
LESSONS_AGO: Final[Micros] = 15 * DAY
WORDS_A_LESSON: Final = 6

Event = tuple[Micros, Callable[[Micros], Awaitable[object]]]


async def fill_demo(address: str | Path, *, now: Micros) -> None:
    """Fill the new store at ``address`` with three weeks up to ``now``; refuse a store that contains sessions."""
    clock = DemoClock(wall=now - BEGINS_AGO)
    database = await asyncio.to_thread(open_database, address, clock=clock)
    try:
        owner = await database.write(lambda tx: enter_store(tx, person_id=None))
        known = await database.read(lambda tx: count(tx, person_id=owner.id))
        if known.sessions:
            raise InvalidValue("the demo fills only an empty store, and this one contains conversations")
        ids = Ids(seed=SEED)
        player = Player(database=database, clock=clock, ids=ids)
        await player.connect(sample.PLATFORMS)
        await _Filling(player=player, owner=owner, now=now).fill()
        await player.disconnect()
    finally:
        await database.close()


@dataclass(slots=True, kw_only=True)
class _Filling:
    player: Player
    owner: Person
    now: Micros
    projects: dict[str, int] = field(default_factory=dict)

    async def fill(self) -> None:
        """Play all events in the order of their times."""
        await self.player.at(self.now - BEGINS_AGO, self._meet)
        events: list[Event] = [(self.now - each.ago, self._talk(each)) for each in sample.CONVERSATIONS]
        events += self._diary()
        events += self._schedule()
        events.append((self.now - LESSONS_AGO, self._learn))
        events.append((self.now - 5 * MINUTE, self._knock))
        for when, act in sorted(events, key=lambda event: event[0]):
            await act(when)

    def _meet(self, tx: Tx) -> None:
        """Link the owner's accounts on all platforms, admit the members, and create the projects."""
        ids, owner = self.player.ids, self.owner
        for source in sample.OWN:
            offered = offer_link(tx, ids, source=LOCAL_CLI, person_id=owner.id)
            account = replace(source, chat_type="dm", thread_id=None)
            assert isinstance(enter_link(tx, offered.code, source=account, person_id=None), Linked)
        for source in sample.MEMBERS:
            asked = offer_pairing(tx, source, ids)
            assert isinstance(asked, IssuedCode)
            approve_pairing(tx, asked.request_no, by=owner.id)
        for name, colour in PROJECTS.items():
            made = create_project(tx, ProjectPlan(name=name, colour=colour), person_id=owner.id)
            assert isinstance(made, Project)
            self.projects[name] = made.id

    def _talk(self, conversation: SampleConversation) -> Callable[[Micros], Awaitable[None]]:
        async def act(when: Micros) -> None:
            session_id: SessionId | None = None
            for exchange in conversation.exchanges:
                source = exchange.by or conversation.source
                said_in = await self.player.play(when, source, exchange, model=conversation.model)
                session_id = session_id or said_in
                when += exchange.after
            assert session_id is not None
            for job in conversation.jobs:
                await self._run(when, session_id, job)
                when += 2 * MINUTE
            await self.player.at(when, lambda tx: self._arrange(tx, session_id, conversation))

        return act

    def _arrange(self, tx: Tx, session_id: SessionId, conversation: SampleConversation) -> None:
        """Apply the conversation's tags, pin, project, draft and other marks."""
        mine = self.owner.id
        for tag in conversation.tags:
            change_session.tag(tx, session_id, tag, person_id=mine)
        for memory in conversation.memories:
            remember(tx, session_id, memory, person_id=mine)
        if conversation.project is not None:
            change_session.set_project(tx, session_id, self.projects[conversation.project], person_id=mine)
        if conversation.draft is not None:
            change_session.save_draft(tx, session_id, conversation.draft, revision=0, person_id=mine)
        if conversation.pinned:
            change_session.pin(tx, session_id, person_id=mine)
        if conversation.archived:
            change_session.archive(tx, session_id, person_id=mine)
        if conversation.deleted:
            change_session.delete(tx, session_id, actor=Actor(person_id=mine, give_way=give_way))
        if conversation.forked is not None:
            self._fork(tx, session_id, conversation.forked)
        if not conversation.unread and conversation.source not in sample.MEMBERS:
            change_session.mark_read(
                tx, session_id, seq=get_session(tx, session_id, person_id=mine).last_seq, person_id=mine
            )

    def _fork(self, tx: Tx, session_id: SessionId, fork: Fork) -> None:
        mine = self.owner.id
        forked = fork_session(tx, self.player.ids, session_id, person=self.owner, title=fork.title)
        append_message(tx, forked, text_message("user", fork.said), person_id=mine)
        append_message(tx, forked, text_message("assistant", fork.answer), person_id=mine)

    def _diary(self) -> list[Event]:
        """Return one diary entry for each of the last days, so that daily usage has content."""
        entries, remarks = sample.DIARY.split("; "), sample.DIARY_REMARKS.split("; ")

        def note(number: int, entry: str) -> Callable[[Micros], Awaitable[object]]:
            remark = remarks[number % len(remarks)]
            answer = sample.DIARY_ANSWER.format(entry, remark)
            exchange = SampleExchange(said=f"Garden: {entry}.", answer=answer)
            model = sample.SONNET if number % 3 else sample.GPT
            source = Source(platform="local", chat_id="garden", chat_type="dm", chat_name="Garden diary")
            return lambda when: self.player.play(when, source, exchange, model=model)

        first = self.now - len(entries) * DAY
        return [(first + number * DAY, note(number, entry)) for number, entry in enumerate(entries)]

    def _schedule(self) -> list[Event]:
        """Return the events of three schedules: one that fires every morning, a paused one, and a future one."""
        made_at = self.now - MORNING_AGO
        rule = parse_rule(MORNING, zone=ZONE, anchor_at=made_at)
        fires = next_fires(rule, after=made_at, count=MORNING_AGO // DAY)
        events: list[Event] = [(made_at, lambda when: self.player.at(when, self._make_schedules))]
        events += [(at + SECOND, self._fire) for at in fires if at < self.now - MINUTE]
        return events

    def _make_schedules(self, tx: Tx) -> None:
        coming = f"{datetime_of(self.now + 2 * DAY, zone_of(ZONE)):%Y-%m-%d} 09:00"
        for name, rule, asked in (
            ("Morning news", MORNING, "What is new about Rome's public transport? Two sentences."),
            ("Weekly review", "0 17 * * FRI", "What did we leave open this week?"),
            ("Call the hotel", coming, "Remind me to call the hotel about the late arrival."),
        ):
            plan = SchedulePlan(name=name, rule=rule, zone=ZONE, parts=(TextPart(text=asked),), route=ORIGIN)
            made = create_schedule(tx, plan, person_id=self.owner.id, origin=sample.TELEGRAM)
            assert isinstance(made, Scheduled)
            if name == "Weekly review":
                pause_schedule(tx, made.schedule.id, person_id=self.owner.id)

    async def _fire(self, when: Micros) -> None:
        answer = (
            "Line B runs again since this morning. On Sunday the city centre is closed to cars until six."
        )
        exchange = SampleExchange(said="", answer=answer, to=(Address.of(sample.TELEGRAM),))

        def fire(tx: Tx) -> None:
            assert isinstance(fire_schedule(tx, self.player.ids, settings=SETTINGS), Fired)
            self.player.answer(tx, None, sample.TELEGRAM.platform, exchange, model=sample.GPT)

        await self.player.at(when, fire)

    async def _learn(self, when: Micros) -> None:
        """Create a long conversation whose beginning a summary covers."""
        ids, owner = self.player.ids, self.owner
        options = SessionOptions(title="Italian, six words a day", model=sample.GPT)
        session_id = await self.player.at(
            when, lambda tx: create_session(tx, ids, source=LOCAL_CLI, person=owner, options=options)
        )
        words = [entry.split() for entry in sample.WORDS.split(", ")]
        for first in range(0, len(words), WORDS_A_LESSON):
            lesson = words[first : first + WORDS_A_LESSON]
            await self.player.at(when, lambda tx, lesson=lesson: self._lesson(tx, session_id, lesson))  # type: ignore[misc]
            when += 12 * HOUR
        summary = Summary(
            first_seq=1,
            last_seq=len(words),
            text=f"Words learnt so far: {', '.join(italian for _, italian in words[: len(words) // 2])}.",
            tokens_before=len(words) * 12,
            tokens_after=len(words) * 2,
        )
        await self.player.at(when, lambda tx: cover(tx, session_id, summary, person_id=owner.id))

    def _lesson(self, tx: Tx, session_id: SessionId, lesson: list[list[str]]) -> None:
        for english, italian in lesson:
            for asked, told in (
                (f"What is “{english}” in Italian?", f"“{english.capitalize()}” is **{italian}**."),
                (f"And what was “{italian}” again?", f"“{italian.capitalize()}” is {english}; well asked."),
            ):
                append_message(tx, session_id, text_message("user", asked), person_id=self.owner.id)
                append_message(tx, session_id, text_message("assistant", told), person_id=self.owner.id)

    async def _run(self, when: Micros, session_id: SessionId, job: SampleProcess) -> None:
        """Run a background process to its end, and let the agent report the end."""

        def start(tx: Tx) -> int:
            new = NewProcess(command=job.command, workspace="~/src/herald")
            started = record_started(tx, new, session_id=session_id, person_id=self.owner.id)
            record_spawned(tx, started, pid=4_000 + started, pid_started_at=1, machine_boot_id="demo")
            return started

        def end(tx: Tx) -> None:
            record_end(tx, process_id, "exited", exit_code=job.exit_code, output_bytes=4_096, tail=job.tail)
            told = SampleExchange(said="", answer=job.told)
            self.player.answer(tx, session_id, "local", told, model=sample.SONNET)

        process_id = await self.player.at(when, start)
        await self.player.at(when + MINUTE, end)

    async def _knock(self, when: Micros) -> None:
        await self.player.at(when, lambda tx: offer_pairing(tx, sample.STRANGER, self.player.ids))
