"""What every call of the library needs: the store, for whom it acts, and who keeps the index."""

from functools import lru_cache
from typing import Final

from keryx.domain.person import Person
from keryx.domain.session import SessionId, parse_session_id
from keryx.ids import Ids
from keryx.library.indexing import Indexer
from keryx.store.database import Database

parsed: Final = lru_cache(maxsize=4_096)(parse_session_id)
"""Session ids are parsed at this edge; the few in use are parsed once."""


class Acting:
    """A program at work in a store, on behalf of one person."""

    def __init__(self, database: Database, person: Person, *, ids: Ids, indexer: Indexer) -> None:
        self._database = database
        self._person = person
        self._person_id = person.id
        self._ids = ids
        self._indexer = indexer

    @property
    def person(self) -> Person:
        """For whom everything here is read and written."""
        return self._person

    def _id(self, session_id: str) -> SessionId:
        return parsed(session_id)
