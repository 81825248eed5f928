"""Log lines have the ids of what they are about, and never the text of a message or a name."""

import asyncio
import json
import logging
from dataclasses import replace
from typing import get_args

import pytest

from keryx.agents.agent import Answer, Brief, Stage
from keryx.cli.log import formatter_of
from keryx.config import LogFormat
from keryx.core.conversations.rules.message import NewMessage, TextPart, ToolCallPart
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Outcome
from keryx.core.deliveries.rules.route import Address
from keryx.core.turns.rules.inbox import Inbound
from keryx.errors import AgentFailed
from keryx.gateway.runtime.log import FIELDS, log_ids, log_of, trace_of
from keryx.platforms.adapter import Capabilities, Malformed, Outgoing
from keryx.store.database import Database
from keryx.testing.platform import FakeAdapter, FakePlatform
from tests.flow.running import Actor, gateway_of, last_text, let_in, said, until
from tests.flow.turns.test_turn_ends import RecordingTool

WORD = "canary"


class QuotingAdapter(FakeAdapter):
    """Fails once, with its input in the error."""

    broken = False
    typed = asyncio.Event()

    async def send(self, outgoing: Outgoing) -> Outcome:
        if not self.broken:
            self.broken = True
            raise ConnectionResetError(str(outgoing))
        return await super().send(outgoing)

    async def show_typing(self, to: Address) -> None:
        self.typed.set()
        raise ConnectionResetError(f"{WORD} {to}")


async def quote(brief: Brief, stage: Stage) -> Answer:
    """Fail in every way, with the text of the message in the error."""
    text = last_text(brief)
    if text.startswith("wait"):
        await until(QuotingAdapter.typed.is_set)
    if text.startswith("raise"):
        raise ValueError(text) from KeyError(text)
    if text.startswith("fail"):
        raise AgentFailed(text)
    if text.startswith("call"):
        call = ToolCallPart(call_id="c", name="fetch", arguments={"text": text})
        other = replace(call, call_id="d", name=f"{WORD}-tool")
        await stage.act(NewMessage(role="assistant", parts=(call, other)))
    return said(f"You said: {text}")


def spoken(text: str, *, ref: str, user: str = "ana") -> Inbound:
    source = Source(
        platform="fake",
        chat_id="1",
        chat_type="dm",
        chat_name=f"{WORD} chat",
        chat_topic=f"{WORD} topic",
        user_id=user,
        user_name=f"{WORD} name",
        message_id=ref,
    )
    return Inbound(source=source, ref=ref, parts=(TextPart(text=f"{text} {WORD}"),))


async def test_no_text_of_a_message_and_no_name_is_logged(
    store: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keryx.gateway.turns.loop.INTERNAL_ERROR_RETRY", 1)
    QuotingAdapter.typed.clear()
    platform = FakePlatform(capabilities=Capabilities(text_max=4_096, shows_typing=True))
    await let_in(store, platform, "ana")
    caplog.set_level(logging.DEBUG, logger="keryx")
    errand = RecordingTool("fetch", "once", fails_with=ZeroDivisionError(f"{WORD} error"))
    async with gateway_of(store, [QuotingAdapter(platform)], Actor(quote), tools=[errand]):
        for number, text in enumerate(("wait", "raise", "fail", "call", "/search", "/title")):
            platform.deliver(spoken(text, ref=f"update-{number}"))
            await until(lambda number=number: len(platform.shown) == number + 1)  # type: ignore[misc]
        platform.deliver(spoken("who?", ref="stranger", user=f"{WORD} user"))
        platform.deliver(Malformed(ref="odd", raw=f"{{{WORD}", reason=f"not JSON: {WORD}"))
        await until(lambda: len(platform.acknowledged) == 8)
    assert "the typing indicator could not be shown" in caplog.messages
    assert len(caplog.records) > 15
    for record in caplog.records:
        shown = [formatter_of("text").format(record), formatter_of("json").format(record)]
        assert WORD not in "\n".join([*shown, repr(vars(record))]).lower()


async def test_every_line_about_a_turn_or_a_delivery_has_its_ids(
    store: Database, platform: FakePlatform, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="keryx")
    seen: list[Brief] = []

    async def act(brief: Brief, stage: Stage) -> Answer:
        seen.append(brief)
        # Lines of every logger get the ids of the turn during which they are written.
        logging.getLogger("keryx.somebody").info("thinking")
        assert (
            formatter_of("text")
            .format(caplog.records[-1])
            .endswith(f"thinking session={brief.session_id} turn={brief.turn_id}")
        )
        return said("yes")

    async with gateway_of(store, [platform.adapter()], Actor(act)) as gateway:
        platform.say("hello")
        await until(lambda: gateway.metrics.deliveries["sent"] == 1)
    [brief] = seen
    told = {record.getMessage(): vars(record) for record in caplog.records}
    session = {"session": brief.session_id}
    assert _fields(told["accepted"]) == session | {"inbox": 1}
    assert _fields(told["the turn ended: answered"]) == session | {"turn": brief.turn_id}
    assert _fields(told["sent on fake"]) == session | {"turn": brief.turn_id, "delivery": 1}


def _fields(record: dict[str, object]) -> dict[str, object]:
    return {name: record[name] for name in FIELDS if name in record}


def test_a_line_contains_its_ids_and_the_place_of_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    log = log_of("test")
    caplog.set_level(logging.INFO, logger="keryx")
    with log_ids(session="s", turn=3, delivery=None):
        with log_ids(delivery=4):
            log.info("one", extra={"inbox": 5})
        log.failed("two", error=ZeroDivisionError("secret"))
    log.info("three")
    one, two, three = caplog.records
    assert (
        formatter_of("text")
        .format(one)
        .endswith("INFO keryx.gateway.test: one session=s turn=3 delivery=4 inbox=5")
    )
    assert formatter_of("text").format(two).endswith("two session=s turn=3\nZeroDivisionError")
    assert formatter_of("text").format(three).endswith(": three")
    entry = json.loads(formatter_of("json").format(two))
    assert (entry["level"], entry["message"], entry["session"]) == ("error", "two", "s")
    assert (entry["turn"], entry["error"]) == (3, "ZeroDivisionError")
    assert "delivery" not in entry


def fail(word: str, *, hide_cause: bool = False) -> None:
    """Fail because of another failure, both with ``word`` in their messages."""
    try:
        raise KeyError(word)
    except KeyError as error:
        if hide_cause:
            raise ValueError(word) from None
        raise ValueError(word) from error


def fail_again(word: str) -> None:
    """Fail while another failure is handled."""
    try:
        fail(word, hide_cause=True)
    except ValueError:
        raise OSError(word)  # noqa: B904 - this is what is shown


def test_failures_are_logged_with_their_causes_and_without_messages(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ValueError, match=WORD) as caught:
        fail(WORD)
    trace = trace_of(caught.value)
    assert trace.startswith("ValueError\n  File ")
    assert "\nKeyError\n  File " in trace
    logging.getLogger("keryx.other").error("failed", exc_info=caught.value)
    for form in get_args(LogFormat):
        shown = formatter_of(form).format(caplog.records[-1])
        assert "KeyError" in shown
        assert WORD not in shown


def test_a_suppressed_cause_is_left_out_and_a_context_is_logged() -> None:
    with pytest.raises(OSError, match=WORD) as caught:
        fail_again(WORD)
    trace = trace_of(caught.value)
    assert "ValueError\n" in trace
    assert "KeyError\n" not in trace
