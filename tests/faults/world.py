"""A store with a bit of everything under way, for the crash points."""

from dataclasses import dataclass, replace

from keryx.clock import DAY, HOUR
from keryx.core.accounts.transactions import Connector, take_connector
from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import ApprovalQuestion
from keryx.core.approvals.rules.approval_rule import WHOLE_TOOL
from keryx.core.context.transactions.cover_messages import Covered, Summary, cover
from keryx.core.context.transactions.manage_memory import remember
from keryx.core.conversations.rules.message import TextPart
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.core.conversations.tables import session_keys, sessions
from keryx.core.conversations.transactions.branch_session import undo
from keryx.core.conversations.transactions.change_session import delete
from keryx.core.conversations.transactions.fork_session import fork_session
from keryx.core.conversations.transactions.manage_project import Project, ProjectPlan, create_project
from keryx.core.conversations.transactions.session_guard import Actor
from keryx.core.deliveries.rules.route import ORIGIN
from keryx.core.deliveries.tables import outbox
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries
from keryx.core.media.tables import Blob
from keryx.core.media.transactions import keep_blob
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.link_accounts import offer_link
from keryx.core.people.transactions.pair_stranger import IssuedCode
from keryx.core.processes.rules import NoticePolicy
from keryx.core.processes.transactions.record_process import NewProcess, record_started
from keryx.core.schedules.rules.plan import SchedulePlan
from keryx.core.schedules.transactions.manage_schedule import Scheduled, create_schedule, pause_schedule
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.transactions.record_step import ask_approval, record_calls, record_result, start_call
from keryx.core.values.turn_states import StepEffect, TurnId
from keryx.store.database import Tx
from keryx.testing.builders import call_message, dm, result_message
from tests.conformance.stage import Stage

PLAN = SchedulePlan(
    name="tea", rule="every 2h", zone="UTC", parts=(TextPart(text="Make tea."),), route=ORIGIN
)
PROCESS = NewProcess(command="make", workspace=None, notice=NoticePolicy(patterns=("oh",)))
SUMMARY = Summary(first_seq=1, last_seq=2, text="They spoke of one.", tokens_before=9, tokens_after=3)
QUESTION = ApprovalQuestion(text="May I?", tool="tool", covers=WHOLE_TOOL)
BLOB = Blob("a" * 64, "image/png", 3, None, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The people, sessions and other objects in the store."""

    owner: Person
    ana: Person
    talk: SessionId
    """Ana's idle session with an abandoned branch, a fork, a summary, a memory, a blob and a process."""
    old: SessionId
    """A session that ``/new`` closed long ago."""
    binned: SessionId
    fork: SessionId
    running: BegunTurn
    """Ben's turn, with open calls and a steering message."""
    steering: int
    pure: BegunTurn
    """Gil's turn, with only pure calls and a requested rollback."""
    waiting: SessionId
    approval_id: int
    rule_id: int
    """A standing approval by Ben."""
    connector: Connector
    sending: outbox.Delivery
    process_id: int
    project_id: int
    schedule_id: int
    paused_id: int
    memory_id: int
    cover_no: int
    link: IssuedCode
    request_no: int


async def build_world(stage: Stage) -> World:
    """Build the world in an order in which some leases have expired and some have not."""
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
    await stage.do(lambda tx: undo(tx, talk, actor=Actor(person_id=ana.id, give_way=give_way)))
    forked = await stage.do(lambda tx: fork_session(tx, stage.ids, talk, person=ana))
    covered = await stage.do(lambda tx: cover(tx, talk, SUMMARY, person_id=ana.id))
    assert isinstance(covered, Covered)
    memory_id = await stage.do(lambda tx: remember(tx, talk, "likes tea", person_id=ana.id).memory_id)
    await stage.do(lambda tx: keep_blob(tx, talk, BLOB))
    process_id = await stage.do(lambda tx: record_started(tx, PROCESS, session_id=old, person_id=ana.id))
    project = await stage.do(lambda tx: create_project(tx, ProjectPlan(name="house"), person_id=ana.id))
    assert isinstance(project, Project)
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
        project_id=project.id,
        schedule_id=due,
        paused_id=paused,
        memory_id=memory_id,
        cover_no=covered.no,
        link=link,
        request_no=request_no,
    )


async def _attach(stage: Stage, session_id: SessionId, person: Person) -> None:
    """Attach a second surface to a session."""
    audience_id = (await stage.session(session_id)).audience_id

    def attach(tx: Tx) -> None:
        source = dm("ana", platform="signal")
        access.add_identity(tx, source, person_id=person.id, user_id="ana")
        session_keys.point_key(
            tx,
            SessionKey("agent:main:signal:dm:ana"),
            session_id=session_id,
            source=source,
            audience_id=audience_id,
        )

    await stage.do(attach)


async def _schedule(stage: Stage, person: Person) -> tuple[int, int]:
    """Create a schedule that is due, and a paused one."""
    due = await stage.do(lambda tx: create_schedule(tx, PLAN, person_id=person.id, origin=dm()))
    resting = replace(PLAN, name="rest")
    rest = await stage.do(lambda tx: create_schedule(tx, resting, person_id=person.id, origin=dm()))
    assert isinstance(due, Scheduled)
    assert isinstance(rest, Scheduled)
    await stage.do(lambda tx: pause_schedule(tx, rest.schedule.id, person_id=person.id))
    stage.clock.advance(3 * HOUR)
    return due.schedule.id, rest.schedule.id


async def _lose_things(stage: Stage) -> None:
    """Leave a turn and a delivery with lost holders."""
    await stage.accept("lost", source=dm("ed"))
    begun = await stage.begin()
    message = call_message(("pay", "once"), ("look", "pure"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: start_call(tx, begun.held, call_id="pay"))
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="gone"))
    assert connector is not None
    await stage.do(lambda tx: claim_deliveries(tx, connector, limit=1))
    stage.clock.advance(LEASE_TIME)


async def _ask(stage: Stage, user: str) -> tuple[SessionId, int]:
    """Let a turn wait for an approval."""
    accepted = await stage.accept(f"delete it, {user}", source=dm(user))
    begun = await stage.begin()
    message = call_message(("c", "ask"))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    approval_id = await stage.do(
        lambda tx: ask_approval(tx, begun.held, call_id="c", question=QUESTION, ids=stage.ids)
    )
    return accepted.session_id, approval_id


def _allow(tx: Tx, turn_id: TurnId, *, approval_id: int) -> int:
    """Add a standing approval of the turn's person for the tool of its calls."""
    person_id = turns.get_turn(tx, turn_id).person_id
    assert person_id is not None
    tool = turns.get_step(tx, turn_id=turn_id, call_id="c").name
    return approvals.add_rule(
        tx, person_id=person_id, session_id=None, tool=tool, pattern=WHOLE_TOOL, approval_id=approval_id
    ).id


async def _run(stage: Stage, user: str, effect: StepEffect, *, behind: str) -> tuple[BegunTurn, int]:
    """Run a turn with one open and one finished call, and a message that waits behind it."""
    await stage.accept(f"do it, {user}", source=dm(user))
    begun = await stage.begin()
    message = call_message(("c", effect), ("d", effect))
    await stage.do(lambda tx: record_calls(tx, begun.held, message=message, ids=stage.ids))
    await stage.do(lambda tx: record_result(tx, begun.held, result=result_message("d")))
    return begun, (await stage.accept(behind, source=dm(user))).inbox_id


async def _send(stage: Stage) -> tuple[Connector, outbox.Delivery]:
    """Leave a delivery in state ``sending``."""
    connector = await stage.do(lambda tx: take_connector(tx, platform="telegram", account="", holder="g"))
    assert connector is not None
    [sending] = await stage.do(lambda tx: claim_deliveries(tx, connector, limit=1))
    return connector, sending


def _bin(tx: Tx, session_id: SessionId) -> bool:
    """Move a session to the bin for its owner."""
    return delete(
        tx,
        session_id,
        actor=Actor(person_id=sessions.get_session(tx, session_id).owner_id, give_way=give_way),
    )
