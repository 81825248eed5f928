"""Waiting for whichever happens first."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*events: Coroutine[Any, Any, object]) -> None:
    """Return when one of them has happened; the others are waited for no more."""
    tasks = [asyncio.create_task(event) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
