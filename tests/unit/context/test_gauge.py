"""The gauge of the context window: parts that add up, and their text."""

import pytest

from keryx.core.context.rules.gauge import Gauge
from keryx.errors import InvalidValue


def test_a_gauge_adds_up_its_parts_and_describes_them() -> None:
    gauge = Gauge(window=128_000, system=400, tools=1_600, history=30_000, attachments=0)
    assert gauge.total == 32_000
    assert gauge.lines() == [
        "Context at the last question: 32,000 of 128,000 tokens (25 %).",
        "Of these, about: system 400, tools 1,600, history 30,000, attachments 0.",
    ]


def test_a_gauge_accepts_no_negative_count() -> None:
    with pytest.raises(InvalidValue, match="history of a gauge"):
        Gauge(window=1, system=0, tools=0, history=-1, attachments=0)
