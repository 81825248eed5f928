"""The exceptions that Keryx raises, in one tree.

Expected outcomes (a duplicate, a refusal, an empty queue) are return values; exceptions are for broken promises.
Each message says what was wrong, where, and what to do.

::

    KeryxError
    ├── InvalidValue          a value is not valid (also a ValueError)
    ├── NotFound              no such session, message, turn, person …
    ├── NotAllowed            the person may not do this
    ├── SessionBusy           another holder's turn runs in the session
    ├── LeaseLost             another holder has taken the lease; the old holder's result is dropped
    ├── NotConnected          Keryx cannot reach a platform, or cannot listen to it
    ├── AgentFailed           the agent cannot answer; a later try may succeed
    ├── ToolFailed            a tool call failed
    └── StoreError
        ├── StoreUnavailable  the database cannot be reached, is full or locked; nothing was stored
        ├── StoreCorrupt      the file is damaged, or is not a database
        ├── StoreTooNew       a newer Keryx wrote the database
        └── StoreUnsafe       this database library or file system cannot keep the store's promises
"""

from keryx.clock import Micros


class KeryxError(Exception):
    """The base class of all exceptions that Keryx raises on purpose."""


class InvalidValue(KeryxError, ValueError):
    """A value from outside cannot be parsed, or is out of its range."""


class NotFound(KeryxError, LookupError):
    """The id does not exist, or the person may not see the object."""


class NotAllowed(KeryxError):
    """The person's role or grants do not allow this here."""


class SessionBusy(KeryxError):
    """Another holder's turn runs in the session; nothing was written."""


class LeaseLost(KeryxError):
    """Another holder has the session's lease. Nothing was written; drop the work."""


class NotConnected(KeryxError):
    """An account cannot be connected now; the message names the setting or service that prevents the connection."""


class AgentFailed(KeryxError):
    """The agent cannot answer. ``reason`` is a sentence for people; ``retry_after`` is set if a retry may succeed."""

    def __init__(self, reason: str, *, retry_after: Micros | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class ToolFailed(KeryxError):
    """A tool call failed. The agent gets the message as the result of the call."""


class StoreError(KeryxError):
    """The store could not carry out the transaction; nothing was written."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is full, or stayed locked."""


class StoreCorrupt(StoreError):
    """The database file is damaged, or is not a database."""


class StoreTooNew(StoreError):
    """A newer Keryx wrote the database."""


class StoreUnsafe(StoreError):
    """The database library or the file system cannot keep the store's promises."""
