"""Standing approvals: made with an answer, used only for that person, ended with the session, removable at any time."""

import pytest

from keryx.clock import HOUR
from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import (
    APPROVAL_LIFETIME,
    Answered,
    ApprovalQuestion,
    NoStandingApproval,
    Scope,
)
from keryx.core.approvals.rules.approval_rule import ApprovalRule, CallToApprove
from keryx.core.approvals.transactions.decide_approval import decide_approval, expire_approvals
from keryx.core.approvals.transactions.manage_approval_rules import allow_by_rules, forget_rule
from keryx.core.approvals.views import list_rules
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.transactions.change_session import close
from keryx.core.people.rules.person import PersonId
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.record_step import Started, ask_approval
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.errors import NotFound
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.acting import call, result, start
from tests.conformance.stage import Stage

WEB = Source(platform="web", chat_id="browser", chat_type="dm")
GIT = ApprovalQuestion(text="May I run git status?", tool="tool", covers="git *")


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    for user in ("ana", "ben"):
        await stage.meet(user)
    return stage


async def begin(stage: Stage, *, source: Source | None = None) -> BegunTurn:
    """Let a turn make a call that needs approval."""
    await stage.accept("do it", source=source or dm(), ref=stage.ids.token())
    begun = await stage.begin()
    await call(stage, begun, ("c", "ask"))
    return begun


async def person_of(stage: Stage, begun: BegunTurn) -> PersonId:
    person_id = (await stage.turn(begun)).person_id
    assert person_id is not None
    return PersonId(person_id)


async def allowed(stage: Stage, begun: BegunTurn, *, covers: str | None = "git *") -> bool:
    """Return whether the call is allowed without a question."""
    wish = CallToApprove(call_id="c", tool="tool", question="May I run git log?", covers=covers)
    found = await stage.do(lambda tx: allow_by_rules(tx, begun.held, calls=[wish]))
    return found == {"c"}


async def ask(stage: Stage, begun: BegunTurn, question: ApprovalQuestion = GIT) -> int:
    return await stage.do(
        lambda tx: ask_approval(tx, begun.held, call_id="c", question=question, ids=stage.ids)
    )


async def decide(stage: Stage, approval_id: int, scope: Scope, *, person_id: PersonId) -> object:
    return await stage.do(
        lambda tx: decide_approval(tx, approval_id, "approved", person_id=person_id, scope=scope)
    )


async def end(stage: Stage, begun: BegunTurn) -> None:
    """Run an allowed call and end the turn."""
    assert isinstance(await start(stage, begun, "c"), Started)
    await result(stage, begun, "c")
    await stage.finish(begun)


async def allow(stage: Stage, scope: Scope, *, source: Source | None = None) -> ApprovalRule:
    """Ask a person, who gives a standing approval; return the rule."""
    begun = await begin(stage, source=source)
    approval_id = await ask(stage, begun)
    outcome = await decide(stage, approval_id, scope, person_id=await person_of(stage, begun))
    assert isinstance(outcome, Answered)
    assert outcome.rule is not None
    await end(stage, await stage.begin())
    return outcome.rule


async def holds(stage: Stage, *, source: Source | None = None, covers: str | None = "git *") -> bool:
    """Return whether the next call of a person is allowed without a question."""
    begun = await begin(stage, source=source)
    found = await allowed(stage, begun, covers=covers)
    if found:
        await end(stage, begun)
    else:
        await stage.finish(begun, "never mind")
    return found


async def test_a_question_lists_its_answers_and_the_coverage_of_a_standing_approval(stage: Stage) -> None:
    approval_id = await ask(stage, await begin(stage))
    [(_, told)] = await stage.said()
    assert told == (
        "May I run git status?\n"
        "/approve: yes, once\n"
        "/approve session: yes, from now on in this conversation (tool: git *)\n"
        "/approve always: yes, from now on everywhere (tool: git *)\n"
        "/deny: no\n"
        f"This is question {approval_id}. Without an answer by 2026-09-22 14:13 UTC it is not done."
    )
    record = await stage.look(lambda tx: approvals.get_approval(tx, approval_id))
    assert (record.question, record.covers, record.rule_id) == ("May I run git status?", "git *", None)


async def test_always_applies_everywhere_to_the_same_pattern_and_names_the_rule(stage: Stage) -> None:
    rule = await allow(stage, "always")
    assert (rule.tool, rule.pattern, rule.session_id) == ("tool", "git *", None)
    assert await holds(stage)
    await stage.accept("/new")
    begun = await begin(stage)
    assert await allowed(stage, begun)
    [(state, answered_by, rule_id, question)] = await stage.rows(
        f"SELECT state, answered_by, rule_id, question FROM approvals WHERE turn_id = {begun.turn_id}"
    )
    person_id = await person_of(stage, begun)
    assert (state, answered_by, rule_id, question) == ("approved", person_id, rule.id, "May I run git log?")
    await end(stage, begun)
    assert not await holds(stage, covers="rm *")
    assert not await holds(stage, covers=None)


async def test_a_session_approval_applies_there_and_ends_with_the_session(stage: Stage) -> None:
    rule = await allow(stage, "session")
    assert rule.session_id is not None
    assert await holds(stage)
    await stage.accept("/new")
    assert not await holds(stage)
    await stage.accept(f"/resume {rule.session_id}")
    assert not await holds(stage)


async def test_a_session_closed_by_a_program_ends_its_rules_too(stage: Stage) -> None:
    rule = await allow(stage, "session")
    session = await stage.session(rule.session_id or "")
    await stage.do(lambda tx: close(tx, session.id, person_id=session.owner_id, reason="done"))
    assert await stage.look(lambda tx: list_rules(tx, session.owner_id, limit=9)) == []


async def test_a_standing_approval_applies_to_no_other_person(stage: Stage) -> None:
    await allow(stage, "always", source=group("ana"))
    assert not await holds(stage, source=group("ben"))
    assert not await holds(stage, source=dm("ben"))
    assert await holds(stage, source=group("ana"))


async def test_a_turn_without_a_person_has_no_standing_approvals(stage: Stage) -> None:
    await allow(stage, "always")
    begun = await begin(stage)
    await stage.tamper(f"UPDATE turns SET person_id = NULL WHERE id = {begun.turn_id}")
    assert not await allowed(stage, begun)


async def test_without_a_pattern_a_standing_approval_is_refused_and_the_question_stays_open(
    stage: Stage,
) -> None:
    begun = await begin(stage)
    approval_id = await ask(stage, begun, ApprovalQuestion(text="May I run a; b?", tool="tool"))
    person_id = await person_of(stage, begun)
    assert "session" not in (await stage.said())[0][1]
    assert await decide(stage, approval_id, "always", person_id=person_id) == NoStandingApproval()
    assert (await stage.turn(begun)).state == "waiting"
    outcome = await decide(stage, approval_id, "once", person_id=person_id)
    assert isinstance(outcome, Answered)
    assert outcome.rule is None
    await end(stage, await stage.begin())
    assert not await holds(stage)


async def test_a_denial_or_a_second_answer_makes_no_rule(stage: Stage) -> None:
    begun = await begin(stage)
    approval_id = await ask(stage, begun)
    person_id = await person_of(stage, begun)
    await stage.do(lambda tx: decide_approval(tx, approval_id, "denied", person_id=person_id, scope="always"))
    await decide(stage, approval_id, "always", person_id=person_id)
    assert await stage.rows("SELECT * FROM approval_rules") == []


async def test_the_same_approval_twice_is_one_rule_which_can_be_forgotten(stage: Stage) -> None:
    first = await begin(stage)
    first_asked = await ask(stage, first)
    second = await begin(stage, source=group("ana"))
    second_asked = await ask(stage, second)
    person_id = await person_of(stage, first)
    outcomes = [
        await decide(stage, number, "always", person_id=person_id) for number in (first_asked, second_asked)
    ]
    [rule_id] = {outcome.rule.id for outcome in outcomes if isinstance(outcome, Answered) and outcome.rule}
    for _ in outcomes:
        await end(stage, await stage.begin())
    with pytest.raises(NotFound, match="You have no rule"):
        await stage.do(lambda tx: forget_rule(tx, rule_id, person_id=PersonId(person_id + 1)))
    assert await holds(stage)
    await stage.do(lambda tx: forget_rule(tx, rule_id, person_id=person_id))
    assert not await holds(stage)
    with pytest.raises(NotFound):
        await stage.do(lambda tx: forget_rule(tx, rule_id, person_id=person_id))
    again = await allow(stage, "always")
    assert again.id != rule_id


async def test_a_call_that_a_rule_allowed_survives_a_crash_and_runs_once(stage: Stage) -> None:
    await allow(stage, "always")
    begun = await begin(stage)
    assert await allowed(stage, begun)
    await stage.lose_holder()
    await stage.recover()
    again = await stage.begin()
    assert again.turn_id != begun.turn_id
    verdict = await stage.look(lambda tx: approvals.find_verdict(tx, turn_id=again.turn_id, call_id="c"))
    assert verdict == "approved"
    await end(stage, again)
    assert (await stage.look(lambda tx: turns.get_step(tx, turn_id=again.turn_id, call_id="c"))).starts == 1


async def test_a_purge_deletes_the_sessions_rules_and_keeps_the_others(stage: Stage) -> None:
    here = await allow(stage, "session")
    everywhere = await allow(stage, "always")
    assert await holds(stage)
    session = await stage.session(here.session_id or "")
    await stage.accept("/new")
    await stage.do(lambda tx: purge_session(tx, session.id, person_id=session.owner_id))
    assert await stage.rows("SELECT id, approval_id FROM approval_rules") == [(everywhere.id, None)]
    assert await holds(stage)


async def test_an_expiry_is_announced_where_it_was_asked_while_the_turn_waits(stage: Stage) -> None:
    await ask(stage, await begin(stage))
    await ask(stage, await begin(stage, source=dm("ben")))
    await stage.accept("/stop", source=dm("ben"))
    stage.clock.advance(APPROVAL_LIFETIME + HOUR)
    await stage.do(lambda tx: expire_approvals(tx, ids=stage.ids))
    [(address, text)] = [each for each in await stage.said() if "in time" in each[1]]
    assert address == "telegram:ana"
    assert text.startswith("Question ")
    assert text.endswith(" was not answered in time, so it was not done: May I run git status?")


async def reply(stage: Stage, text: str, *, source: Source | None = None) -> str:
    """Give a command and return the reply."""
    before = len(await stage.said())
    await stage.accept(text, source=source, ref=stage.ids.token())
    return (await stage.said())[before][1]


async def test_the_commands_take_number_and_scope_in_any_order_and_in_any_chat(stage: Stage) -> None:
    first = await ask(stage, await begin(stage, source=group("ana")))
    await stage.accept(f"/approve session {first}")
    told, elsewhere = sorted(text for _, text in (await stage.said())[-2:])
    assert elsewhere == f"Question {first} was allowed elsewhere."
    assert told.startswith("Allowed, and from now on in that conversation: tool: git *. /approve forget ")
    await end(stage, await stage.begin())
    second = await ask(stage, await begin(stage, source=group("ana")))
    told = await reply(stage, f"/approve {second} ALWAYS", source=group("ana"))
    assert told.startswith("Allowed, and from now on everywhere: what the question said. /approve forget ")
    await end(stage, await stage.begin())
    here, everywhere, how = (await reply(stage, "/approve rules")).splitlines()
    assert "tool: git *, in '" in here
    assert everywhere.endswith("tool: git *, always; allowed less than a minute ago")
    assert how == "/approve forget <number> takes one back."
    third = await ask(stage, await begin(stage))
    assert await reply(stage, f"/approve once {third}") == "Allowed."


async def test_an_answer_is_announced_on_every_other_surface_with_the_question(stage: Stage) -> None:
    begun = await begin(stage, source=WEB)
    await stage.accept(f"/attach {begun.lease.session_id}", source=LOCAL_CLI)
    first = await ask(stage, begun)
    await stage.accept(f"/deny {first}", source=LOCAL_CLI)
    assert (await stage.said("web"))[-1][1] == f"Question {first} was refused elsewhere."
    assert (await stage.said("local"))[-1][1] == "Refused."
    await stage.finish(await stage.begin(), "as you like")
    # A terminal that joined shows by itself what waits and who answered.
    second = await ask(stage, await begin(stage, source=WEB))
    at_terminal = await stage.said("local")
    await stage.accept(f"/approve {second}", source=WEB)
    assert (await stage.said("web"))[-1][1] == "Allowed."
    assert await stage.said("local") == at_terminal
    # Who comes too late is told so, and nobody else anything.
    at_browser = await stage.said("web")
    await stage.accept(f"/deny {second}", source=LOCAL_CLI)
    assert (await stage.said("local"))[-1][1] == "That was approved already."
    assert await stage.said("web") == at_browser


async def test_a_question_of_a_stopped_turn_waits_for_nobody(stage: Stage) -> None:
    await ask(stage, await begin(stage))
    await stage.accept("/stop")
    assert await reply(stage, "/approve always") == "Nothing waits for your answer here."
