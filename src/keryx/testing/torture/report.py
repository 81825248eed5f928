"""The report of a torture run, for people and for programs."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from keryx.core.turns.rules.inbox import Fate
from keryx.values import dataclass

BREACHES_SHOWN: Final = 5
_FATES: Final[dict[Fate, str]] = {
    "answered": "answered",
    "merged": "merged",
    "cancelled": "stopped",
    "failed": "failed visibly",
    "command": "commands",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Some durations in seconds."""

    seconds: tuple[float, ...] = ()

    def at(self, part: float) -> float:
        """Return the quantile: the value that ``part`` of the durations do not exceed."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(part * len(ordered)) - 1)]

    def __str__(self) -> str:
        if not self.seconds:
            return "not measured"
        return f"p50 {self.at(0.5):.2f} s, max {max(self.seconds):.2f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a torture run."""

    seed: int
    where: str
    seconds: float
    messages: int
    chats: int
    tried: Mapping[str, int]
    """How often each fault was injected."""
    measured: Mapping[str, Measured]
    counts: Mapping[str, int]
    """How often the platform injected each fault, by name."""
    fates: Counter[Fate | None]
    breaches: Mapping[str, Sequence[str]]
    folder: Path | None = field(default=None)
    """The folder with all records, if there was a breach."""

    @property
    def held(self) -> bool:
        """Whether all promises were kept."""
        return not any(self.breaches.values())

    def to_text(self) -> str:
        """Return the report as a short table."""
        fates = ", ".join(f"{count} {_FATES[fate]}" for fate, count in self.fates.most_common() if fate)
        lines = [
            f"{self.messages} messages of {self.chats} chats in {self.seconds:.0f} s, {self.where}, seed {self.seed}",
            "",
            "tried",
            *(f"  {count:>6}  {what}" for what, count in self.tried.items() if count),
            *(f"  {count:>6}  {what}" for what, count in sorted(self.counts.items())),
            "",
            "measured",
            *(f"  {what}: {times}" for what, times in self.measured.items() if times.seconds),
            f"  fates: {fates}",
            "",
            "held",
        ]
        for promise, found in self.breaches.items():
            lines.append(f"  {'NO ' if found else 'yes'}  {promise}")
            lines += [f"         {breach}" for breach in found[:BREACHES_SHOWN]]
            if len(found) > BREACHES_SHOWN:
                lines.append(f"         and {len(found) - BREACHES_SHOWN} more")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        data: dict[str, Any] = {
            "held": self.held,
            "seed": self.seed,
            "where": self.where,
            "seconds": round(self.seconds, 3),
            "messages": self.messages,
            "chats": self.chats,
            "tried": dict(self.tried),
            "platform": dict(self.counts),
            "fates": {fate or "none": count for fate, count in self.fates.items()},
            "measured": {
                what: {
                    "p50": round(times.at(0.5), 3),
                    "max": round(max(times.seconds), 3),
                    "times": len(times.seconds),
                }
                for what, times in self.measured.items()
                if times.seconds
            },
            "breaches": {promise: list(found) for promise, found in self.breaches.items()},
            "folder": None if self.folder is None else str(self.folder),
        }
        return json.dumps(data, indent=1)
