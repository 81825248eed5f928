"""Programs that Keryx starts and waits for."""

import sys
from asyncio.subprocess import SubprocessStreamProtocol
from typing import Any

if sys.version_info < (3, 11, 4):
    # In these versions asyncio prints a traceback if a program ends while it is written to, unless the writer waits for
    # the end of the pipe. Later versions print nothing.
    _lost = SubprocessStreamProtocol.pipe_connection_lost

    def _lost_quietly(protocol: Any, fd: int, exc: Exception | None) -> None:
        _lost(protocol, fd, exc)
        if fd == 0:
            protocol._stdin_closed.exception()  # noqa: SLF001 - an exception that was read is not printed

    SubprocessStreamProtocol.pipe_connection_lost = _lost_quietly  # type: ignore[method-assign, assignment]
