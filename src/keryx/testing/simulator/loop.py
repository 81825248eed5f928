"""Virtual time and simulated processes: an event loop that never waits, and groups of tasks that die or freeze as one.

A task belongs to the process in whose context it was created, and so do the tasks it starts. No code of a dead process
runs, not even a ``finally``. The callbacks of a frozen process are kept and run when it thaws.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Literal

_CURRENT: ContextVar["Process | None"] = ContextVar("keryx_process", default=None)

State = Literal["alive", "frozen", "dead", "reaped"]


class Deadlock(Exception):
    """Every task waits for another one, so nothing will ever run again."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as no callback is ready."""

    def __init__(self) -> None:
        self.passed = 0.0
        super().__init__(_VirtualSelector(self))
        self._tasks: list[asyncio.Task[Any]] = []
        # Keep the tasks of dead processes: garbage collection would run their ``finally``.
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.passed

    @property
    def unfinished(self) -> "list[asyncio.Task[Any]]":
        """The tasks that have not ended, including those of dead processes."""
        self._tasks = [task for task in self._tasks if not task.done()]
        return list(self._tasks)

    def _make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
        task = asyncio.Task(work, loop=loop, **options)
        self._tasks.append(task)
        return task

    def call_soon(  # type: ignore[override]  # the caller checks the callback's arguments
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback; the callback of a process runs only while the process is alive."""
        context = context or copy_context()
        process = context.get(_CURRENT)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(process.run_unless_suspended, callback, args, context, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback for later, by the same rule."""
        context = context or copy_context()
        process = context.get(_CURRENT)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, process.run_unless_suspended, callback, args, context, context=context)


class _VirtualSelector(selectors.SelectSelector):
    """Advances the virtual time instead of waiting; a simulation waits for no real file."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlock("every task waits for another")
        self._loop.passed += max(0.0, timeout)
        return []


class Process:
    """A group of tasks that lives, freezes and dies as one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: State = "alive"
        self._parked: list[tuple[Callable[..., object], tuple[Any, ...], Context]] = []
        self._context = copy_context()
        self._context.run(_CURRENT.set, self)

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task of this process."""
        return asyncio.get_running_loop().create_task(work, context=self._context.copy())

    def run_unless_suspended(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context
    ) -> None:
        """Run a callback if the process is alive; else keep it until the process thaws or is reaped."""
        if self.state in ("alive", "reaped"):
            callback(*args)
        else:
            self._parked.append((callback, args, context))

    def kill(self) -> None:
        """Stop all tasks of this process permanently."""
        self.state = "dead"

    def freeze(self) -> None:
        """Suspend all tasks of this process until it thaws."""
        if self.state == "alive":
            self.state = "frozen"

    def thaw(self) -> None:
        """Resume the tasks of a frozen process."""
        if self.state == "frozen":
            self.state = "alive"
            self._resume()

    def reap(self) -> None:
        """Let the remaining tasks end, so that Python can clean up; their calls are refused."""
        self.state = "reaped"
        self._resume()

    def _resume(self) -> None:
        parked, self._parked = self._parked, []
        for callback, args, context in parked:
            asyncio.get_running_loop().call_soon(callback, *args, context=context)


def no_process_context() -> Context:
    """Return a context that belongs to no process, for the world's own callbacks."""
    context = copy_context()
    context.run(_CURRENT.set, None)
    return context
