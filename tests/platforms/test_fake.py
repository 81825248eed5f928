"""The fake platform keeps the contract of adapters, and fails only on request."""

import asyncio
from collections.abc import Sequence

import pytest

from keryx.core.deliveries.rules.delivery import Rejected, Sent
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.platforms.adapter import Adapter, Capabilities, Malformed, Outgoing
from keryx.testing.adapter_contract import AdapterContract, Fault, take, texts
from keryx.testing.platform import FakePlatform, PlatformFault

_FAULTS: dict[Fault, PlatformFault] = {
    "down": "reject",
    "lose the message": "lose the message",
    "lose the receipt": "lose the receipt",
    "limit": "limit",
    "refuse permanently": "refuse permanently",
    "dead": "dead",
}


class FakeService:
    """The fake platform as a service for the contract tests."""

    def __init__(self, platform: FakePlatform, *, chat: str = "1") -> None:
        self.platform = platform
        self.chat = chat
        self.address = Address(platform=platform.name, account=platform.account, chat_id=chat)

    def connect(self) -> Adapter:
        return self.platform.adapter()

    async def say(self, text: str) -> None:
        self.platform.say(text, chat=self.chat)

    async def send_malformed(self) -> None:
        self.platform.send_malformed("{")

    def shown(self) -> Sequence[str]:
        return self.platform.said_to(self.chat)

    def menu(self) -> Sequence[str]:
        return self.platform.menu

    async def cut(self) -> None:
        self.platform.cut()

    async def inject(self, fault: Fault | None) -> None:
        platform_fault = None if fault is None else _FAULTS[fault]
        self.platform.before_send = lambda _: platform_fault


class TestPlain(AdapterContract):
    @pytest.fixture
    def service(self) -> FakeService:
        return FakeService(FakePlatform())


class TestEditingAndDeduplicating(AdapterContract):
    @pytest.fixture
    def service(self) -> FakeService:
        can = Capabilities(text_max=500, text_unit="utf-16", edits=True, deduplicates=True, has_menu=True)
        return FakeService(FakePlatform(capabilities=can, account="second"), chat="!room:example.org")


def piece(text: str, key: str = "k") -> Outgoing:
    return Outgoing(to=Address(platform="fake", chat_id="1"), piece=TextPiece(text=text), key=key)


async def test_waiting_updates_can_be_reordered() -> None:
    platform = FakePlatform()
    platform.say("one")
    platform.say("two")
    platform.reorder()
    assert texts(await take(platform.adapter(), 2)) == ["two", "one"]


async def test_a_cut_connection_ends_receive_and_the_next_one_continues() -> None:
    platform = FakePlatform()
    adapter = platform.adapter()
    waiting = asyncio.ensure_future(anext(adapter.receive()))
    await asyncio.sleep(0)
    platform.cut()
    with pytest.raises(ConnectionResetError):
        await waiting
    platform.say("hello")
    assert texts(await take(adapter, 1)) == ["hello"]


async def test_a_repeated_acknowledgement_skips_no_update() -> None:
    platform = FakePlatform()
    adapter = platform.adapter()
    platform.say("one")
    updates = adapter.receive()
    first = await anext(updates)
    await adapter.acknowledge(first)
    await adapter.acknowledge(first)
    platform.say("two")
    platform.say("three")
    assert texts([await anext(updates), await anext(updates)]) == ["two", "three"]


async def test_a_redelivered_update_is_received_again() -> None:
    platform = FakePlatform()
    said = platform.say("hello", ref="ref-1")
    adapter = platform.adapter()
    assert await take(adapter, 1) == [said]
    platform.deliver(said)
    assert await take(adapter, 1) == [said]
    assert platform.acknowledged == ["ref-1", "ref-1"]


async def test_a_malformed_update_is_received_unchanged() -> None:
    platform = FakePlatform()
    platform.send_malformed("{")
    [update] = await take(platform.adapter(), 1)
    assert isinstance(update, Malformed)
    assert update.raw == "{"


async def test_the_platform_records_every_state_of_a_message_and_typing() -> None:
    platform = FakePlatform(capabilities=Capabilities(text_max=100, edits=True))
    adapter = platform.adapter()
    sent = await adapter.send(piece("Hel"))
    assert isinstance(sent, Sent)
    assert sent.message_id
    await adapter.edit(piece("Hello"), message_id=sent.message_id)
    assert platform.shown[0].texts == ["Hel", "Hello"]
    missing = await adapter.edit(piece("Hello"), message_id="never")
    assert missing == Rejected(reason="there is no such message", permanent=True)
    await adapter.show_typing(piece("").to)
    assert platform.typing == [piece("").to]
