"""Sessions out of a store and into one, as lines of JSON."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from functools import partial

from keryx.domain.archive import Archive, ArchiveParser
from keryx.domain.session import SessionId
from keryx.library.acting import Acting
from keryx.transactions.import_session import import_session
from keryx.views.export import begin_export, continue_export


class Exchange(Acting):
    """The calls that let a session leave and come back."""

    async def export(self, session_id: str) -> AsyncIterator[str]:
        """Yield a session as lines of JSON (without line ends), lossless; ``import_lines`` is the inverse."""
        wanted = self._id(session_id)
        page = await self._database.read(lambda tx: begin_export(tx, wanted, person_id=self._person_id))
        while True:
            for line in page.lines:
                yield line
            rest = page.rest
            if rest is None:
                return
            page = await self._database.read(partial(continue_export, rest=rest))

    async def import_lines(self, lines: Iterable[str] | AsyncIterable[str]) -> list[SessionId]:
        """Take in exported sessions, each whole or not at all, and return their ids.

        A session keeps its id where that is free. Raises ``InvalidValue`` at the first line that does not fit; the
        sessions before it are in.
        """
        parser = ArchiveParser()
        imported: list[SessionId] = []
        async for line in _each(lines):
            archive = parser.add(line)
            if archive is not None:
                imported.append(await self._import(archive))
        archive = parser.end()
        if archive is not None:
            imported.append(await self._import(archive))
        return imported

    async def _import(self, archive: Archive) -> SessionId:
        session_id = await self._database.write(
            lambda tx: import_session(tx, self._ids, archive, owner=self._person)
        )
        self._indexer.note(len(archive.messages) + 1)
        return session_id


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
