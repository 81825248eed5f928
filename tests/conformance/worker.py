"""What another process does with a store, for tests that need several: ``python -m tests.conformance.worker …``.

Prints one line of JSON.
"""

import asyncio
import json
import sys

from keryx.clock import SECOND, SystemClock
from keryx.core.conversations.rules.message import text_message
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.tables import feed
from keryx.core.conversations.transactions.append_message import append_message
from keryx.core.people.tables import people
from keryx.core.turns.transactions.begin_turn import begin_turn
from keryx.core.turns.views.pending_work import list_ready
from keryx.store.database import Database
from keryx.store.opening import open_database


async def append(database: Database, session_id: str, seconds: str) -> dict[str, int]:
    """Append for so long; say how many there were and how long the slowest took."""
    clock = SystemClock()
    owner = await database.write(people.ensure_owner)
    until = clock.monotonic() + int(seconds) * SECOND
    appended = worst = 0
    while (before := clock.monotonic()) < until:
        message = text_message("user", f"message {appended}")
        await database.write(
            lambda tx, message=message: append_message(  # type: ignore[misc]
                tx, SessionId(session_id), message, person_id=owner.id
            )
        )
        appended += 1
        worst = max(worst, clock.monotonic() - before)
    return {"appended": appended, "worst_micros": worst}


async def claim(database: Database, holder: str) -> list[int]:
    """Begin turns until nothing waits any more; say which items they answer."""
    claimed: list[int] = []
    while await database.read(list_ready):
        begun = await database.write(lambda tx: begin_turn(tx, holder=holder))
        if begun is not None:
            claimed += [item.id for item in begun.answers]
    return claimed


async def note(database: Database, session_id: str) -> int:
    """Record one fact about a session."""
    return await database.write(lambda tx: feed.add_event(tx, session_id, "session.changed"))


async def main(task: str, address: str, *arguments: str) -> None:
    """Do one of the above."""
    database = open_database(address)
    result = await {"append": append, "claim": claim, "note": note}[task](database, *arguments)  # type: ignore[operator]
    await database.close()
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
