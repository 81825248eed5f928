"""The only maker of ids, codes and other randomness.

Whoever needs one is given an ``Ids``, so that a simulator can make every run the same.
"""

import random
import secrets
from datetime import UTC, datetime

from keryx.clock import SECOND, Micros

PAIRING_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Letters and digits that nobody mixes up when reading them aloud."""


class Ids:
    """Makes ids from the system's randomness, or the same ones again when given a seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = secrets.SystemRandom() if seed is None else random.Random(seed)

    def session_id(self, now: Micros) -> str:
        """``YYYYMMDD_HHMMSS_`` in UTC plus eight hex digits."""
        moment = datetime.fromtimestamp(now // SECOND, tz=UTC)
        return f"{moment:%Y%m%d_%H%M%S}_{self._random.getrandbits(32):08x}"

    def token(self) -> str:
        """Thirty-two hex digits nobody can guess: holders, idempotency keys, references."""
        return f"{self._random.getrandbits(128):032x}"

    def pairing_code(self) -> str:
        """Eight characters that are easy to read aloud."""
        return "".join(self._random.choice(PAIRING_ALPHABET) for _ in range(8))
