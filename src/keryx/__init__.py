"""Keryx: the session layer of an AI agent.

Importing this package loads nothing else; ``open`` and ``open_sync`` are fetched from ``keryx.library`` when
first used, so that ``keryx --version`` pays for no database driver.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__version__ = "0.1.0.dev0"
__all__ = ["__version__", "open", "open_sync"]

_LAZY = {"open": "keryx.library.client", "open_sync": "keryx.library.sync"}


def __getattr__(name: str) -> "Callable[..., object]":
    if name not in _LAZY:
        raise AttributeError(f"module 'keryx' has no attribute {name!r}")
    value: Callable[..., object] = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
