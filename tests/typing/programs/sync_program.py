"""A program without an event loop."""

from pathlib import Path

import keryx


def last_words(kx: keryx.KeryxSync, session_id: str) -> str | None:
    """Return the text of the last message."""
    messages: list[keryx.Message] = kx.transcript(session_id, last=1)
    return messages[-1].text if messages else None


def main(address: str | Path) -> None:
    """Say something and find it again."""
    with keryx.open_sync(address, person=None) as kx:
        session: keryx.Session = kx.create_session(title="Notes")
        appended: keryx.Appended = kx.append(session.id, role="user", text="Buy bread.", author="Ana")
        assert last_words(kx, session.id) == "Buy bread."
        assert kx.rename(session.id, "Shopping")
        page: keryx.SessionPage = kx.list_sessions(limit=10, tag=None)
        assert page.rows[0].last_seq == appended.seq
        lines: list[str] = list(kx.export(session.id))
        copies: list[keryx.SessionId] = kx.import_lines(lines)
        assert kx.count().sessions == 1 + len(copies)
        person: keryx.Person = kx.run(_person(kx.keryx))
        assert person == kx.person


async def _person(kx: keryx.Keryx) -> keryx.Person:
    return kx.person
