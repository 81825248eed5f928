"""Export a session as lines of JSON, and read such lines.

A long session is read page by page, so that no read transaction stays open while the caller writes a line.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from functools import partial

from keryx.core.conversations.rules.archive import Archive, ArchiveParser
from keryx.core.conversations.rules.session import parse_session_id
from keryx.core.conversations.views.archive import begin_export, continue_export
from keryx.store.database import Database


async def export_lines(database: Database, session_id: str, *, person_id: int) -> AsyncIterator[str]:
    """Yield a session as lines of JSON, without line ends."""
    wanted = parse_session_id(session_id)
    page = await database.read(lambda tx: begin_export(tx, wanted, person_id=person_id))
    while True:
        for line in page.lines:
            yield line
        rest = page.rest
        if rest is None:
            return
        page = await database.read(partial(continue_export, rest=rest))


async def read_archives(lines: Iterable[str] | AsyncIterable[str]) -> AsyncGenerator[Archive, None]:
    """Yield each exported session as soon as its last line is read; raise InvalidValue at the first bad line."""
    parser = ArchiveParser()
    async for line in _each(lines):
        archive = parser.add(line)
        if archive is not None:
            yield archive
    archive = parser.end()
    if archive is not None:
        yield archive


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
