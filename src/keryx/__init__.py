"""Keryx: the session layer of an AI agent.

Importing this package loads nothing else, so that ``keryx --version`` pays for no database driver. A public name is
imported from its module when it is first used. Type checkers read ``__init__.pyi``, which lists the same names.
"""

import importlib

__version__ = "0.3.0.dev0"

_NAMES = {
    "keryx.clock": "Clock",
    "keryx.core.context.rules.openai_chat": "ChatMessage",
    "keryx.core.context.rules.prompt": "ContextFacts",
    "keryx.core.context.views.usage": "Amount Usage",
    "keryx.core.conversations.rules.branch": "Siblings",
    "keryx.core.conversations.rules.event": "Event EventKind Position",
    "keryx.core.conversations.rules.message": (
        "MediaPart Message NewMessage Part Role TextPart ThinkingPart ToolCallPart ToolResultPart UnknownPart"
    ),
    "keryx.core.conversations.rules.session": "SessionId",
    "keryx.core.conversations.rules.source": "ChatType Source",
    "keryx.core.conversations.transactions.append_message": "Appended",
    "keryx.core.conversations.transactions.branch_session": "Branched NothingToRedo NothingToUndo",
    "keryx.core.conversations.views.session_list": "SessionCount SessionPage Session",
    "keryx.core.people.rules.person": "Person",
    "keryx.core.search.views.search": "Hit Neighbour Order SearchResult SessionHits Snippet",
    "keryx.core.turns.views.overview": "Overview LiveTurn NextFire OpenApproval QueuedItem RunningProcess",
    "keryx.core.values.json_value": "JsonValue",
    "keryx.errors": (
        "AgentFailed InvalidValue KeryxError LeaseLost NotAllowed NotConnected NotFound SessionBusy "
        "StoreCorrupt StoreError StoreTooNew StoreUnavailable StoreUnsafe ToolFailed"
    ),
    "keryx.ids": "Ids",
    "keryx.library.client": "Keryx",
    "keryx.library.filters": "ListFilter SearchFilter",
    "keryx.library.messages": "MessageDetails ToolCall",
    "keryx.library.open": "open",
    "keryx.library.sync": "KeryxSync open_sync",
}
"""The public names, by the module that defines them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]  # noqa: PLE0604 - its keys are strings


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'keryx' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
