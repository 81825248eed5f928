"""The public names as type checkers see them; ``__init__.py`` imports the same names when they are first used."""

from keryx.clock import Clock
from keryx.core.context.rules.openai_chat import ChatMessage
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.views.usage import Amount, Usage
from keryx.core.conversations.rules.branch import Siblings
from keryx.core.conversations.rules.event import Event, EventKind, Position
from keryx.core.conversations.rules.message import (
    MediaPart,
    Message,
    NewMessage,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    UnknownPart,
)
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import ChatType, Source
from keryx.core.conversations.transactions.append_message import Appended
from keryx.core.conversations.transactions.branch_session import Branched, NothingToRedo, NothingToUndo
from keryx.core.conversations.views.session_list import Session, SessionCount, SessionPage
from keryx.core.people.rules.person import Person
from keryx.core.search.views.search import Hit, Neighbour, Order, SearchResult, SessionHits, Snippet
from keryx.core.turns.views.overview import (
    LiveTurn,
    NextFire,
    OpenApproval,
    Overview,
    QueuedItem,
    RunningProcess,
)
from keryx.core.values.json_value import JsonValue
from keryx.errors import (
    AgentFailed,
    InvalidValue,
    KeryxError,
    LeaseLost,
    NotAllowed,
    NotConnected,
    NotFound,
    SessionBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
    StoreUnsafe,
    ToolFailed,
)
from keryx.ids import Ids
from keryx.library.client import Keryx
from keryx.library.filters import ListFilter, SearchFilter
from keryx.library.messages import MessageDetails, ToolCall
from keryx.library.open import open  # noqa: A004 - said as `keryx.open`
from keryx.library.sync import KeryxSync, open_sync

__version__: str
__all__ = [
    "AgentFailed",
    "Amount",
    "Appended",
    "Branched",
    "ChatMessage",
    "ChatType",
    "Clock",
    "ContextFacts",
    "Event",
    "EventKind",
    "Hit",
    "Ids",
    "InvalidValue",
    "JsonValue",
    "Keryx",
    "KeryxError",
    "KeryxSync",
    "LeaseLost",
    "ListFilter",
    "LiveTurn",
    "MediaPart",
    "Message",
    "MessageDetails",
    "Neighbour",
    "NewMessage",
    "NextFire",
    "NotAllowed",
    "NotConnected",
    "NotFound",
    "NothingToRedo",
    "NothingToUndo",
    "OpenApproval",
    "Order",
    "Overview",
    "Part",
    "Person",
    "Position",
    "QueuedItem",
    "Role",
    "RunningProcess",
    "SearchFilter",
    "SearchResult",
    "Session",
    "SessionBusy",
    "SessionCount",
    "SessionHits",
    "SessionId",
    "SessionPage",
    "Siblings",
    "Snippet",
    "Source",
    "StoreCorrupt",
    "StoreError",
    "StoreTooNew",
    "StoreUnavailable",
    "StoreUnsafe",
    "TextPart",
    "ThinkingPart",
    "ToolCall",
    "ToolCallPart",
    "ToolFailed",
    "ToolResultPart",
    "UnknownPart",
    "Usage",
    "__version__",
    "open",
    "open_sync",
]
