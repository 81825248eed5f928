"""The only module that makes ids, codes and other random values.

Code that needs an id takes an ``Ids``, so that the simulator can repeat a run exactly.
"""

import random
import secrets
from datetime import UTC, datetime

from keryx.clock import SECOND, Micros

PAIRING_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Letters and digits that sound and look different from each other."""


class Ids:
    """Makes ids from the system's randomness, or from a seed: the same seed gives the same ids."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = secrets.SystemRandom() if seed is None else random.Random(seed)

    def session_id(self, now: Micros) -> str:
        """Return ``YYYYMMDD_HHMMSS_`` in UTC plus eight hex digits."""
        moment = datetime.fromtimestamp(now // SECOND, tz=UTC)
        return f"{moment:%Y%m%d_%H%M%S}_{self._random.getrandbits(32):08x}"

    def token(self) -> str:
        """Return 32 hex digits that cannot be guessed, for holders, idempotency keys and references."""
        return f"{self._random.getrandbits(128):032x}"

    def pairing_code(self) -> str:
        """Return eight characters that are easy to read aloud."""
        return "".join(self._random.choice(PAIRING_ALPHABET) for _ in range(8))
