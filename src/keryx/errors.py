"""Everything Keryx raises, in one tree.

Outcomes that belong to the job (a duplicate, a refusal, an empty queue) are return values; these are for broken
promises. Each message says what was wrong, where, and what to do.

::

    KeryxError
    ├── InvalidValue          a value that cannot be (also a ValueError)
    ├── NotFound              no such session, message, turn, person …
    ├── NotAllowed            this person may not do this
    ├── SessionBusy           another holder's turn runs in the session
    ├── LeaseLost             the lease was taken over; the holder's result is dropped
    ├── NotConnected          a platform cannot be reached, or listened to
    └── StoreError
        ├── StoreUnavailable  the database cannot be reached, is full or locked; nothing was stored
        ├── StoreCorrupt      the file is damaged, or no database
        ├── StoreTooNew       written by a newer Keryx
        └── StoreUnsafe       this database library or file system cannot keep the promises
"""


class KeryxError(Exception):
    """The root: catch this to catch everything Keryx raises on purpose."""


class InvalidValue(KeryxError, ValueError):
    """A value from outside does not parse, or cannot be constructed."""


class NotFound(KeryxError, LookupError):
    """What was asked for by id is not there, or not visible to the person asking."""


class NotAllowed(KeryxError):
    """The person may not do this here."""


class SessionBusy(KeryxError):
    """Another holder's turn runs in the session; nothing was written."""


class LeaseLost(KeryxError):
    """Somebody else holds the session now; nothing was written, and the work must be dropped."""


class NotConnected(KeryxError):
    """An account cannot be connected now; the message names the setting or the service that is in the way."""


class StoreError(KeryxError):
    """The store could not do what it was asked; nothing was written."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is full, or stayed locked."""


class StoreCorrupt(StoreError):
    """The database file is damaged, or is not a database."""


class StoreTooNew(StoreError):
    """The database was written by a newer Keryx than this one."""


class StoreUnsafe(StoreError):
    """The database library or the file system cannot keep the promises."""
