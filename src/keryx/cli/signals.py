"""Signals that would end the process at once, heard instead, so that it ends in order and leaves nothing running."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

BY_SIGNAL: Final = 128
"""Added to a signal's number, it is the exit code of what that signal ended."""
NO_SIGNALS: Final = (NotImplementedError, RuntimeError)
"""What a loop says that hears none: on Windows, or beside the main thread."""


@contextmanager
def ended_by(end: Callable[[signal.Signals], None], *signals: signal.Signals) -> Iterator[None]:
    """Let ``end`` be called in the running loop with each of the signals that comes; as before, after the block."""
    loop = asyncio.get_running_loop()
    for number in signals:
        with suppress(*NO_SIGNALS):
            loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in signals:
            with suppress(*NO_SIGNALS):
                loop.remove_signal_handler(number)
