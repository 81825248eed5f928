"""The usage of the context window: parts that add up, and their text."""

import pytest

from keryx.core.context.rules.context_usage import ContextUsage
from keryx.errors import InvalidValue


def test_context_usage_adds_up_its_parts_and_describes_them() -> None:
    usage = ContextUsage(window=128_000, system=400, tools=1_600, history=30_000, attachments=0)
    assert usage.total == 32_000
    assert usage.lines() == [
        "Context at the last question: 32,000 of 128,000 tokens (25 %).",
        "Of these, about: system 400, tools 1,600, history 30,000, attachments 0.",
    ]


def test_context_usage_accepts_no_negative_count() -> None:
    with pytest.raises(InvalidValue, match="history of a context usage"):
        ContextUsage(window=1, system=0, tools=0, history=-1, attachments=0)
