"""A store in which a bit of everything is under way: what the crash points are tried on."""

from dataclasses import dataclass, replace

from keryx.clock import DAY, HOUR
from keryx.domain.approval import Question
from keryx.domain.approval_rule import WHOLE_TOOL
from keryx.domain.lease import LEASE_TIME
from keryx.domain.message import TextPart
from keryx.domain.person import Person
from keryx.domain.process import NoticePolicy
from keryx.domain.route import ORIGIN
from keryx.domain.schedule_plan import SchedulePlan
from keryx.domain.session import SessionId
from keryx.domain.session_key import SessionKey
from keryx.domain.source import LOCAL_CLI
from keryx.domain.turn import StepEffect, TurnId
from keryx.store.database import Tx
from keryx.store.tables import access, approval_rules, keys, outbox, people, sessions, turns
from keryx.store.tables.blobs import Blob
from keryx.testing.builders import call_message, dm, result_message
from keryx.transactions.begin_turn import BegunTurn
from keryx.transactions.branch_session import fork, undo
from keryx.transactions.change_session import delete
from keryx.transactions.cover_messages import Covered, Summary, cover
from keryx.transactions.deliveries import Connector, claim_deliveries, take_connector
from keryx.transactions.keep_blobs import keep_blob
from keryx.transactions.link_accounts import LinkOffered, offer_link
from keryx.transactions.manage_memory import remember
from keryx.transactions.manage_project import ProjectPlan, ProjectSaved, create_project
from keryx.transactions.manage_schedule import Scheduled, create_schedule, pause_schedule
from keryx.transactions.record_process import NewProcess, record_started
from keryx.transactions.record_step import ask_approval, record_calls, record_result, start_call
from tests.conformance.stage import Stage

PLAN = SchedulePlan(
    name="tea", rule="every 2h", zone="UTC", parts=(TextPart(text="Make tea."),), route=ORIGIN
)
PROCESS = NewProcess(command="make", workspace=None, notice=NoticePolicy(patterns=("oh",)))
SUMMARY = Summary(first_seq=1, last_seq=2, text="They spoke of one.", tokens_before=9, tokens_after=3)
QUESTION = Question(text="May I?", tool="tool", covers=WHOLE_TOOL)
BLOB = Blob("a" * 64, "image/png", 3, None, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Who and what there is."""

    owner: Person
    ana: Person
    talk: SessionId
    """Of Ana, idle, with a branch that was left, a fork, a summary, a memory, a blob and a process."""
    old: SessionId
    """Closed by ``/new``, long ago."""
    binned: SessionId
    fork: SessionId
    running: BegunTurn
    """Of Ben: with open calls, and a message that steers."""
    steering: int
    pure: BegunTurn
    """Of Gil: all its calls are pure, and a rollback is asked for."""
    waiting: SessionId
    approval_id: int
    rule_id: int
    """A lasting yes of Ben."""
    connector: Connector
    sending: outbox.Delivery
    process_id: int
    project_id: int
    schedule_id: int
    paused_id: int
    memory_id: int
    cover_no: int
    link: LinkOffered
    request_no: int


async def build_world(stage: Stage) -> World:
    """Let it all happen, in an order in which some leases have run out and some have not."""
    owner = await stage.do(people.ensure_owner)
    ana = await stage.meet("ana")
    for name in ("ben", "cleo", "dora", "ed", "gil", "hugo", "ian"):
        await stage.meet(name)
    old = await stage.exchange("long ago")
    talk = (await stage.accept("/new")).session_id
    binned = (await stage.accept("to be forgotten", source=dm("hugo"))).session_id
    await stage.finish(await stage.begin(), silent=True)
    await stage.do(lambda tx: _bin(tx, binned))
    stage.set(pairing_platforms=frozenset({"telegram"}))
    await stage.hear("let me in", source=dm("early stranger"))
    await _ask(stage, "ian")
    stage.clock.advance(100 * DAY)

    for text in ("one", "two", "three", "four"):
        await stage.exchange(text, f"re {text}")
    await stage.do(lambda tx: undo(tx, talk, person_id=ana.id))
    forked = await stage.do(lambda tx: fork(tx, stage.ids, talk, person=ana))
    covered = await stage.do(lambda tx: cover(tx, talk, SUMMARY, person_id=ana.id))
    assert isinstance(covered, Covered)
    memory_id = await stage.do(lambda tx: remember(tx, talk, "likes tea", person_id=ana.id).memory_id)
    await stage.do(lambda tx: keep_blob(tx, talk, BLOB))
    process_id = await stage.do(lambda tx: record_started(tx, PROCESS, session_id=old, person_id=ana.id))
    project = await stage.do(lambda tx: create_project(tx, ProjectPlan(name="house"), person_id=ana.id))
    assert isinstance(project, ProjectSaved)
    await _attach(stage, talk, ana)
    due, paused = await _schedule(stage, ana)
    link = await stage.do(lambda tx: offer_link(tx, stage.ids, source=LOCAL_CLI, person_id=owner.id))
    await stage.hear("let me in too", source=dm("stranger"))
    [(request_no,)] = await stage.rows("SELECT id FROM pairings WHERE user_id = 'stranger'")

    await _lose_things(stage)
    waiting, approval_id = await _ask(stage, "cleo")
    running, steering = await _run(stage, "ben", "once", behind="!steer left")
    pure, _ = await _run(stage, "gil", "pure", behind="!rollback again")
    rule_id = await stage.do(lambda tx: _allow(tx, running.turn_id, approval_id=approval_id))
    connector, sending = await _send(stage)
    await stage.accept("ready", source=dm("dora"))
    return World(
        owner=owner,
        ana=ana,
        talk=talk,
        old=old,
        binned=binned,
        fork=forked,
        running=running,
        steering=steering,
        pure=pure,
        waiting=waiting,
        approval_id=approval_id,
        rule_id=rule_id,
        connector=connector,
        sending=sending,
        process_id=process_id,
        project_id=project.project.id,
        schedule_id=due,
        paused_id=paused,
        memory_id=memory_id,
        cover_no=covered.no,
        link=link,
        request_no=request_no,
    )


async def _attach(stage: Stage, session_id: SessionId, person: Person) -> None:
    """Let a session be shown on a second surface."""
    audience_id = (await stage.session(session_id)).audience_id

    def attach(tx: Tx) -> None:
        source = dm("ana", platform="signal")
        access.add_identity(tx, source, person_id=person.id, user_id="ana")
        keys.point_key(
            tx,
            SessionKey("agent:main:signal:dm:ana"),
            session_id=session_id,
            source=source,
            audience_id=audience_id,
        )

    await stage.do(attach)


async def _schedule(stage: Stage, person: Person) -> tuple[int, int]:
    """Make a schedule that is due by now, and one that rests."""
    due = await stage.do(lambda tx: create_schedule(tx, PLAN, person_id=person.id, origin=dm()))
    resting = replace(PLAN, name="rest")
    rest = await stage.do(lambda tx: create_schedule(tx, resting, person_id=person.id, origin=dm()))
    assert isinstance(due, Scheduled)
    assert isinstance(rest, Scheduled)
    await stage.do(lambda tx: pause_schedule(tx, rest.schedule.id, person_id=person.id))
    stage.clock.advance(3 * HOUR)
    return due.schedule.id, rest.schedule.id


async def _lose_things(stage: Stage) -> None:
    """Leave a turn and a delivery whose holders are gone."""
    await stage.accept("lost", source=dm("ed"))
    begun = await stage.begin()
    message = call_message(("pay", "once"), ("look", "pure"))
    await stage.do(
        lambda tx: record_calls(tx, begun.lease, turn_id=begun.turn_id, message=message, ids=stage.ids)
    )
    await stage.do(lambda tx: start_call(tx, begun.lease, turn_id=begun.turn_id, call_id="pay"))
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="gone"))
    assert connector is not None
    await stage.do(lambda tx: claim_deliveries(tx, connector, limit=1))
    stage.clock.advance(LEASE_TIME)


async def _ask(stage: Stage, user: str) -> tuple[SessionId, int]:
    """Let a turn wait for a person's word."""
    accepted = await stage.accept(f"delete it, {user}", source=dm(user))
    begun = await stage.begin()
    message = call_message(("c", "ask"))
    await stage.do(
        lambda tx: record_calls(tx, begun.lease, turn_id=begun.turn_id, message=message, ids=stage.ids)
    )
    approval_id = await stage.do(
        lambda tx: ask_approval(
            tx, begun.lease, turn_id=begun.turn_id, call_id="c", question=QUESTION, ids=stage.ids
        )
    )
    return accepted.session_id, approval_id


def _allow(tx: Tx, turn_id: TurnId, *, approval_id: int) -> int:
    """Let whoever a turn runs for lastingly allow the tool of its calls."""
    person_id = turns.get_turn(tx, turn_id).person_id
    assert person_id is not None
    tool = turns.get_step(tx, turn_id=turn_id, call_id="c").name
    return approval_rules.add_rule(
        tx, person_id=person_id, session_id=None, tool=tool, pattern=WHOLE_TOOL, approval_id=approval_id
    ).id


async def _run(stage: Stage, user: str, effect: StepEffect, *, behind: str) -> tuple[BegunTurn, int]:
    """Let a turn run, with one call open and one done, and with a message waiting behind it."""
    await stage.accept(f"do it, {user}", source=dm(user))
    begun = await stage.begin()
    message = call_message(("c", effect), ("d", effect))
    await stage.do(
        lambda tx: record_calls(tx, begun.lease, turn_id=begun.turn_id, message=message, ids=stage.ids)
    )
    await stage.do(
        lambda tx: record_result(tx, begun.lease, turn_id=begun.turn_id, result=result_message("d"))
    )
    return begun, (await stage.accept(behind, source=dm(user))).inbox_id


async def _send(stage: Stage) -> tuple[Connector, outbox.Delivery]:
    """Let a delivery be on its way."""
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    [sending] = await stage.do(lambda tx: claim_deliveries(tx, connector, limit=1))
    return connector, sending


def _bin(tx: Tx, session_id: SessionId) -> bool:
    """Delete a session for its owner."""
    return delete(tx, session_id, person_id=sessions.get_session(tx, session_id).owner_id)
