"""The library for programs without an event loop: the same calls, each of which waits for its result.

An event loop on a background thread runs the calls of the async library.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from keryx.clock import Clock
from keryx.core.people.rules.person import Person
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.library.open import open as open_async

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    call: Callable[Concatenate[Keryx, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["KeryxSync", P], T]:
    """Return a method that waits for the call, with the same arguments and docstring."""

    @wraps(call)
    def wait(program: "KeryxSync", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return program.run(call(program.keryx, *args, **kwargs))

    return wait


class KeryxSync:
    """An open store for a program without an event loop; any number of threads may use it at once."""

    def __init__(self, keryx: Keryx, loop: asyncio.AbstractEventLoop) -> None:
        self._keryx = keryx
        self._loop = loop

    @property
    def keryx(self) -> Keryx:
        """The async library whose calls this one runs."""
        return self._keryx

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call of the async library and return its result."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    @property
    def person(self) -> Person:
        """The person on whose behalf the program reads and writes."""
        return self._keryx.person

    def export(self, session_id: str) -> Iterator[str]:
        """Yield a session as lines of JSON, lossless; ``import_lines`` is the inverse."""
        lines: AsyncIterator[str] = self._keryx.export(session_id)
        while (line := self.run(_next(lines))) is not None:
            yield line

    get_session = _waiting(Keryx.get_session)
    list_sessions = _waiting(Keryx.list_sessions)
    count = _waiting(Keryx.count)
    transcript = _waiting(Keryx.transcript)
    conversation = _waiting(Keryx.conversation)
    versions = _waiting(Keryx.versions)
    search = _waiting(Keryx.search)
    wait_indexed = _waiting(Keryx.wait_indexed)
    rebuild_index = _waiting(Keryx.rebuild_index)
    verify_index = _waiting(Keryx.verify_index)
    context = _waiting(Keryx.context)
    overview = _waiting(Keryx.overview)
    usage = _waiting(Keryx.usage)
    feed = _waiting(Keryx.feed)
    create_session = _waiting(Keryx.create_session)
    session_for = _waiting(Keryx.session_for)
    append = _waiting(Keryx.append)
    append_all = _waiting(Keryx.append_all)
    undo = _waiting(Keryx.undo)
    redo = _waiting(Keryx.redo)
    edit = _waiting(Keryx.edit)
    switch_branch = _waiting(Keryx.switch_branch)
    pop = _waiting(Keryx.pop)
    clear = _waiting(Keryx.clear)
    fork = _waiting(Keryx.fork)
    close_session = _waiting(Keryx.close_session)
    rename = _waiting(Keryx.rename)
    pin = _waiting(Keryx.pin)
    archive = _waiting(Keryx.archive)
    delete = _waiting(Keryx.delete)
    restore = _waiting(Keryx.restore)
    tag = _waiting(Keryx.tag)
    untag = _waiting(Keryx.untag)
    import_lines = _waiting(Keryx.import_lines)


@contextmanager
def open_sync(
    address: str | Path,
    *,
    person: int | None = None,
    profile: str | None = None,
    settings: Mapping[str, str | int | Sequence[str]] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> Iterator[KeryxSync]:
    """Open a store as ``keryx.open`` does, for a program without an event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="keryx-loop", daemon=True)
    thread.start()
    opened = open_async(address, person=person, profile=profile, settings=settings, clock=clock, ids=ids)

    async def leave() -> None:
        await opened.__aexit__(None, None, None)

    try:
        keryx = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
        try:
            yield KeryxSync(keryx, loop)
        finally:
            asyncio.run_coroutine_threadsafe(leave(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _next(lines: AsyncIterator[str]) -> str | None:
    return await anext(lines, None)
