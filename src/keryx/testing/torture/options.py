"""The options of a torture run."""

from dataclasses import field
from typing import Final

from keryx.clock import SECOND
from keryx.core.turns.rules.lease import LEASE_TIME
from keryx.errors import InvalidValue
from keryx.values import dataclass

LEASE_SECONDS: Final = LEASE_TIME / SECOND
TAKEN_OVER_SECONDS: Final = LEASE_SECONDS + 5.0
"""The limit for other gateways to continue the conversations of a lost gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How many faults of which kind, how many gateways, and which store; the constructor refuses impossible values."""

    kills: int = 20
    losses: int = 0
    """How many times a gateway is killed and stays away until the others must have taken over."""
    freezes: int = 0
    restarts: int = 0
    """How many times PostgreSQL is restarted."""
    gateways: int = 1
    postgres: bool = False
    """Whether to use a private PostgreSQL server that lives as long as the run."""
    database: str | None = field(default=None, repr=False)
    """The address of an empty PostgreSQL database to use instead."""
    messages: int = 100
    """The minimum number of sent messages."""
    chats: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("kills", "losses", "freezes", "restarts", "messages"):
            if getattr(self, name) < 0:
                raise InvalidValue(f"--{name} {getattr(self, name)}: give 0 or more")
        if self.gateways < 1 or self.chats < 1:
            raise InvalidValue("there must be at least one gateway and one chat")
        if self.database is not None and not self.database.startswith(("postgresql://", "postgres://")):
            raise InvalidValue("--database: give the address of an empty database, postgresql://…")
        if self.gateways > 1 and not self.on_postgres:
            raise InvalidValue("several gateways need PostgreSQL: add --postgres, or --database URL")
        if self.losses and self.gateways == 1:
            raise InvalidValue("--losses: other gateways must take over; add --gateways 3")
        if self.restarts and (not self.postgres or self.database is not None):
            raise InvalidValue("--restarts: only a private server can be restarted; add --postgres")

    @property
    def on_postgres(self) -> bool:
        """Whether the run uses PostgreSQL."""
        return self.postgres or self.database is not None

    @property
    def where(self) -> str:
        """The gateways and the store in words."""
        store = "PostgreSQL" if self.on_postgres else "SQLite"
        return f"1 gateway on {store}" if self.gateways == 1 else f"{self.gateways} gateways on {store}"
