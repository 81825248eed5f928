"""An async program: sessions, messages, search, usage, export and import."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import keryx


async def show_titles(kx: keryx.Keryx, project: str | None = None) -> list[str]:
    """Return the titles of all sessions, page by page."""
    titles: list[str] = []
    after: str | None = None
    while True:
        page = await kx.list_sessions(limit=2, after=after, project=project, active_within=timedelta(days=7))
        titles += [session.title or session.id for session in page.rows]
        after = page.next
        if after is None:
            return titles


async def copy(kx: keryx.Keryx, session_id: str) -> keryx.SessionId:
    """Copy a session through its lines of JSON."""
    lines: AsyncIterator[str] = kx.export(session_id)
    [copied] = await kx.import_lines(lines)
    return copied


async def main(address: str) -> None:
    """Talk, look and tidy up."""
    async with keryx.open(address) as kx:
        session: keryx.Session = await kx.create_session(title="Trip to Rome", project="travel")
        asked: keryx.Appended = await kx.append(session.id, role="user", text="Where were we?", author="Ana")
        call = {"id": "1", "name": "look_up", "arguments": {"place": "hotel"}}
        await kx.append(session.id, role="assistant", tool_calls=[call], output_tokens=5, created_at=None)
        await kx.append(session.id, role="tool", text="in Rome", tool_call_id="1", tool_name="look_up")
        parts: list[keryx.Part] = [keryx.TextPart(text="At the hotel.")]
        await kx.append_all(session.id, [keryx.NewMessage(role="assistant", parts=tuple(parts))])

        messages: list[keryx.Message] = await kx.transcript(session.id, last=None)
        assert messages[0].seq == asked.seq
        result: keryx.SearchResult = await kx.search("hotel", order="best", session_id=session.id)
        hits: list[keryx.Hit] = [hit for found in result.sessions for hit in found.hits]
        assert hits[0].snippet.text
        chat: list[keryx.ChatMessage] = await kx.conversation(session.id)
        assert chat[0]["role"] == "user"

        now = datetime.now(UTC)
        usage = await kx.usage(since=now - timedelta(days=1), until=now + timedelta(days=1))
        assert usage.total.output_tokens == 5
        events: list[keryx.Event] = await kx.feed()
        assert await kx.feed(events[-1].position) == []

        group = keryx.Source(platform="local", chat_id="family", chat_type="group")
        found: keryx.Session = await kx.session_for(group)
        assert await kx.close_session(found.id)
        assert await copy(kx, session.id) != session.id
        assert "Trip to Rome" in await show_titles(kx, project="travel")
