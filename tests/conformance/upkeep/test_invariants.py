"""Each invariant finds rows that break it."""

from pathlib import Path

import pytest

from keryx.core.upkeep.views.invariants import CHECKS, Breach, check_invariants
from keryx.store.database import Database, Tx
from keryx.store.opening import open_database
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage, statement
from tests.faults.world import build_world

TAMPERED: dict[str, str] = {
    "turn_invariants.claimed_without_turn": "UPDATE turns SET state = 'finished' WHERE state = 'running'",
    "turn_invariants.wrong_fate": "UPDATE inbox SET ended_at = NULL WHERE state = 'done'",
    "turn_invariants.answered_without_turn": "UPDATE inbox SET seq = NULL WHERE fate = 'answered'",
    "turn_invariants.not_one_answer": "UPDATE inbox SET fate = 'merged' WHERE fate = 'answered'",
    "turn_invariants.failed_silently": "UPDATE inbox SET state = 'dead', fate = 'failed', ended_at = 1 "
    "WHERE state = 'ready'",
    "turn_invariants.waiting_in_bin": "UPDATE sessions SET deleted_at = 1",
    "delivery_invariants.replied_twice": "UPDATE outbox SET kind = 'copy', address = 'x', "
    "turn_id = (SELECT MIN(o.turn_id) FROM outbox o) WHERE turn_id IS NOT NULL",
    "delivery_invariants.half_sent": "UPDATE outbox SET claimed_by = NULL WHERE state = 'sending'",
    "delivery_invariants.sent_side_by_side": "UPDATE outbox SET state = 'sending', address = 'x'",
    "delivery_invariants.orphaned": "UPDATE outbox SET platform = 'local', account = 'print-1', state = 'ready'",
    "turn_invariants.out_of_order": "UPDATE inbox SET turn_id = -turn_id + "
    "(SELECT MIN(i.turn_id) + MAX(i.turn_id) FROM inbox i WHERE i.ref IN ('one', 'two', 'three', 'four')) "
    "WHERE ref IN ('one', 'two', 'three', 'four')",
    "conversation_invariants.crossed_keys": "UPDATE session_keys SET audience_id = (SELECT MIN(id) FROM audiences)",
    "delivery_invariants.crossed_replies": "UPDATE audiences SET key = 'chat:' || key",
    "approval_views.crossed_rules": "UPDATE approvals SET rule_id = (SELECT MIN(r.id) FROM approval_rules r)",
    "turn_invariants.falling_epochs": "UPDATE sessions SET lease_epoch = 0",
    "turn_invariants.two_turns": "UPDATE turns SET state = 'running'",
    "turn_invariants.idle_leases": "UPDATE turns SET state = 'waiting' WHERE state = 'running'",
    "conversation_invariants.wrong_totals": "UPDATE sessions SET input_tokens = input_tokens + 1",
    "conversation_invariants.wrong_counts": "UPDATE sessions SET message_count = message_count + 1",
    "conversation_invariants.rootless_branches": "UPDATE branches SET parent_seq = 999",
    "conversation_invariants.stray_messages": "UPDATE messages SET branch_no = 77",
    "conversation_invariants.doubled_places": "UPDATE messages SET branch_no = seq, seq = 1",
    "turn_invariants.open_calls": "UPDATE turns SET state = 'stopped' WHERE state = 'running'",
    "turn_invariants.wrong_results": "DELETE FROM messages WHERE role = 'tool'",
    "turn_invariants.wrong_steps": "UPDATE steps SET starts = 2",
    "turn_invariants.shared_keys": "UPDATE steps SET idempotency_key = 'same'",
    "conversation_invariants.gaps_in_streams": "DELETE FROM feed WHERE number = 2 AND session_id IS NOT NULL",
    "conversation_invariants.gaps_in_personal_streams": "UPDATE people SET feed_no = feed_no + 1",
    "conversation_invariants.messages_without_event": "UPDATE feed SET kind = 'turn' WHERE kind = 'message'",
    "schedule_invariants.wrong_fires": "INSERT INTO fires (schedule_id, due_at, state, inbox_id, fired_at) "
    "SELECT MIN(s.id), 1, 'fired', MIN(i.id), 1 FROM schedules s, inbox i WHERE i.fate = 'answered'",
    "schedule_invariants.repeating_schedules": "UPDATE schedules SET last_due_at = due_at",
}
FOLLOWED: dict[str, str] = {
    # Found only by following the active branch.
    "last_branch_no is 0, but branch": "UPDATE sessions SET last_branch_no = 0",
    "does not exist, or is its own ancestor": "UPDATE branches SET parent_no = 55",
    "but the active branch has": "UPDATE sessions SET message_count = message_count + 1",
    "covers messages that do not exist": "UPDATE covers SET first_seq = 90, last_seq = 99",
}
OTHER_WAY = {
    "delivery_invariants.crossed_replies": "INSERT INTO audiences (key, created_at) VALUES ('chat:telegram:ana', 1)",
    "turn_invariants.open_calls": "UPDATE turns SET state = 'lost' WHERE state = 'running' "
    "AND session_id IN (SELECT session_id FROM inbox WHERE ref = 'lost')",
}


class TakenBack(Exception):
    """Rolls the tampering back."""


async def breaches(database: Database, sql: str) -> list[Breach]:
    """Break rows, return the breaches, and roll back."""
    found: list[Breach] = []

    def tamper(tx: Tx) -> None:
        assert tx.run("test.tamper") > 0
        found.extend(check_invariants(tx))
        raise TakenBack

    with statement("test.tamper", sql), pytest.raises(TakenBack):
        await database.write(tamper)
    return found


async def test_broken_rows_are_found(database: Database, clock: FakeClock) -> None:
    stage = Stage(database=database, clock=clock)
    await build_world(stage)
    assert TAMPERED.keys() == CHECKS.keys()
    for check, sql in [*TAMPERED.items(), *OTHER_WAY.items()]:
        rule, what = CHECKS[check]
        before, after = what.split("{}")
        found = await breaches(database, sql)
        assert any(
            breach.rule == rule and breach.what.startswith(before) and breach.what.endswith(after)
            for breach in found
        ), check
    for what, sql in FOLLOWED.items():
        assert any(what in breach.what for breach in await breaches(database, sql)), what
    await stage.check()


async def test_the_number_of_listed_breaches_is_bounded(tmp_path: Path, clock: FakeClock) -> None:
    database = open_database(tmp_path / "keryx.db", clock=clock)
    stage = Stage(database=database, clock=clock)
    for user in ("ana", "ben", "cleo"):
        await stage.meet(user)
    await stage.tamper("UPDATE people SET feed_no = 7")
    assert len(await stage.look(check_invariants)) == 3
    assert len(await stage.look(lambda tx: check_invariants(tx, found_max=2))) == 2
    await database.close()
