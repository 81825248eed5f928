"""The list of a person's schedules."""

from typing import NamedTuple

from keryx.clock import Micros
from keryx.core.conversations.rules.source import Source
from keryx.store.codec import source_from_json
from keryx.store.database import ReadTx


class ListedSchedule(NamedTuple):
    """A schedule in a list."""

    id: int
    name: str
    rule: str
    state: str
    origin_json: str | None
    due_at: Micros | None

    @property
    def origin(self) -> Source | None:
        """The chat where the schedule was made, if replies can go there."""
        return None if self.origin_json is None else source_from_json(self.origin_json)


def list_schedules(tx: ReadTx, *, owner_id: int) -> list[ListedSchedule]:
    """Return a person's schedules that have not ended, oldest first."""
    return tx.all(ListedSchedule, "schedule_list.list_of_person", owner_id=owner_id)
