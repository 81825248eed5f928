"""Wait for signals and other events in the event loop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

BY_SIGNAL: Final = 128
"""The exit code of a process that a signal ended is this plus the number of the signal."""
_UNSUPPORTED: Final = (NotImplementedError, RuntimeError)
"""Raised by event loops without signal handlers: on Windows, and outside the main thread."""


@contextmanager
def on_signals(handle: Callable[[signal.Signals], object], *signals: signal.Signals) -> Iterator[None]:
    """During the block, call ``handle`` in the running loop for each of the signals instead of ending the process."""
    loop = asyncio.get_running_loop()
    for number in signals:
        with suppress(*_UNSUPPORTED):
            loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in signals:
            with suppress(*_UNSUPPORTED):
                loop.remove_signal_handler(number)


async def wait_for_first(*events: Coroutine[Any, Any, object]) -> None:
    """Return when one of the events has happened, and cancel the others."""
    tasks = [asyncio.create_task(event) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
