"""Metrics of a gateway: exact after a known flow."""

import asyncio
import logging

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.errors import AgentFailed
from keryx.gateway.runtime.metrics import BOUNDS_SECONDS, Durations, Metrics, render, summary
from keryx.platforms.adapter import Outgoing
from keryx.store.database import Database
from keryx.testing.platform import FakePlatform, PlatformFault
from tests.flow.running import Actor, last_text, running, said, until


async def test_metrics_are_exact_after_a_known_flow(
    store: Database, platform: FakePlatform, caplog: pytest.LogCaptureFixture
) -> None:
    lingering = asyncio.Event()
    waiting: list[PlatformFault | None] = []

    async def act(brief: Brief, stage: Stage) -> Answer:
        text = last_text(brief)
        if text == "fail":
            raise AgentFailed("no")
        if text == "linger":
            lingering.set()
            await asyncio.sleep(60)
        return said(f"re {text}")

    def fault(outgoing: Outgoing) -> PlatformFault | None:
        return waiting.pop(0) if waiting else None

    platform.before_send = fault
    caplog.set_level(logging.INFO, logger="keryx")
    async with running(store, platform, Actor(act)) as gateway:
        numbers = gateway.metrics
        first = platform.say("hello")
        await until(lambda: numbers.deliveries["sent"] == 1)
        platform.deliver(first)
        platform.say("let me in", user="nobody")
        platform.send_malformed("{")
        platform.say("fail")
        await until(lambda: numbers.deliveries["sent"] == 2)
        waiting += ["reject"]
        platform.say("try")
        await until(lambda: numbers.deliveries["sent"] == 3)
        platform.say("linger")
        await lingering.wait()
        platform.say("/stop")
        await until(lambda: numbers.deliveries["sent"] == 4 and not gateway.turns_running)
        waiting += ["lose the receipt"]
        platform.say("lost")
        await until(lambda: numbers.deliveries["sent"] == 5)
        waiting += ["refuse permanently"]
        platform.say("never")
        await until(lambda: numbers.deliveries["failed"] == 1)
        assert numbers.turns_running == 0

    assert numbers.updates == {"accepted": 7, "duplicate": 1, "refused": 1, "malformed": 1}
    assert (numbers.turns_begun["reply"], numbers.turns_begun.total()) == (6, 6)
    ended = {kind: count for kind, count in numbers.turns_ended.items() if count}
    assert ended == {"answered": 4, "failed": 1, "stopped": 1}
    assert numbers.deliveries == {"sent": 5, "retried": 1, "unknown": 1, "failed": 1, "taken_over": 0}
    assert numbers.recovered == {"turn": 0, "delivery": 0}
    assert (numbers.update_to_agent.count, numbers.token_to_send.count) == (6, 5)
    assert 0 < numbers.update_to_agent.seconds < 20
    assert summary(numbers) == (
        "updates accepted 7, duplicate 1, refused 1, malformed 1; turns answered 4, failed 1, stopped 1; "
        "deliveries sent 5, retried 1, unknown 1, failed 1"
    )
    assert f"drained: {summary(numbers)}" in caplog.messages


def test_metrics_are_rendered_for_prometheus() -> None:
    numbers = Metrics()
    assert summary(numbers) == "nothing happened"
    numbers.updates["accepted"] += 1
    numbers.turns_begun["reply"] += 2
    numbers.turns_ended["answered"] += 1
    for seconds in (-1.0, 0.005, 0.3, 60.0):
        numbers.update_to_agent.observe(seconds)
    lines = render(numbers).splitlines()
    for line in (
        "# HELP keryx_updates_total Updates of platforms, by outcome.",
        "# TYPE keryx_updates_total counter",
        'keryx_updates_total{outcome="accepted"} 1',
        'keryx_updates_total{outcome="refused"} 0',
        'keryx_turns_begun_total{purpose="reply"} 2',
        "# TYPE keryx_turns_running gauge",
        "keryx_turns_running 1",
        "# TYPE keryx_update_to_agent_seconds histogram",
        'keryx_update_to_agent_seconds_bucket{le="0.0025"} 1',
        'keryx_update_to_agent_seconds_bucket{le="0.005"} 2',
        'keryx_update_to_agent_seconds_bucket{le="0.5"} 3',
        'keryx_update_to_agent_seconds_bucket{le="+Inf"} 4',
        "keryx_update_to_agent_seconds_sum 60.305000",
        "keryx_update_to_agent_seconds_count 4",
        "keryx_token_to_send_seconds_count 0",
    ):
        assert line in lines
    assert render(numbers).endswith("\n")


def test_durations_are_counted_up_to_each_bound() -> None:
    durations = Durations()
    for bound in BOUNDS_SECONDS:
        durations.observe(bound)
    assert [count for _, count in durations.up_to] == list(range(1, len(BOUNDS_SECONDS) + 1))
