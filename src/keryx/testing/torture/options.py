"""What is to be tried."""

from dataclasses import field
from typing import Final

from keryx.clock import SECOND
from keryx.domain.lease import LEASE_TIME
from keryx.errors import InvalidValue
from keryx.values import dataclass

LEASE_SECONDS: Final = LEASE_TIME / SECOND
TAKEN_OVER_SECONDS: Final = LEASE_SECONDS + 5.0
"""Within this, others go on with the conversations of a gateway that is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How often what is done, to how many gateways on which store; values that make no sense cannot be given."""

    kills: int = 20
    losses: int = 0
    """Gateways that are killed and stay away until the others must have taken over."""
    freezes: int = 0
    restarts: int = 0
    """Of PostgreSQL."""
    gateways: int = 1
    postgres: bool = False
    """On a private server, made for this and gone after it."""
    database: str | None = field(default=None, repr=False)
    """An empty PostgreSQL database instead."""
    messages: int = 100
    """At least so many are sent."""
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
            raise InvalidValue("--losses: there must be others to take over; add --gateways 3")
        if self.restarts and (not self.postgres or self.database is not None):
            raise InvalidValue("--restarts: only a private server is restarted; add --postgres")

    @property
    def on_postgres(self) -> bool:
        """Whether it happens on PostgreSQL."""
        return self.postgres or self.database is not None

    @property
    def where(self) -> str:
        """Say on what, in words."""
        store = "PostgreSQL" if self.on_postgres else "SQLite"
        return f"1 gateway on {store}" if self.gateways == 1 else f"{self.gateways} gateways on {store}"
