"""The contract of every platform's adapter, as tests: subclass ``AdapterContract`` and give it a ``service``.

::

    class TestMine(AdapterContract):
        @pytest.fixture
        async def service(self) -> AsyncIterator[MyService]: ...

A ``Service`` plays the platform and its users, never the adapter: it keeps its own records, sends unacknowledged
updates again, and injects the requested faults. The tests are coroutines, for anyio's plug-in.
"""
# ruff: noqa: D102 - the name of a test describes it

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from keryx.commands.table import COMMANDS
from keryx.core.conversations.rules.part import MediaPart, TextPart
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.rules.text import text_size
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.errors import NotConnected
from keryx.platforms.adapter import Adapter, Malformed, Outgoing, Update

PATIENCE_SECONDS = 30.0

Fault = Literal["down", "lose the message", "lose the receipt", "limit", "refuse permanently", "dead"]
"""What a service does with the next message: unreachable; accepts and loses it; shows it, but cuts the connection; …"""

LONG = "\n\n".join(
    [
        "A paragraph with 日本語, e\u0301 and 👩\u200d👩\u200d👧 in it. " * 12,
        "```python\n" + "print('indented', 1)\n" * 80 + "```",
        "x" * 3_000,
        "The end.",
    ]
)
ODD = ("\x00", "\ud800 half", "\u202e turned", "`" * 50, "a\r\nb", "  led by blanks", "\U0001f1ee\U0001f1f9")


class Service(Protocol):
    """A platform, as its users see it."""

    address: Address
    """The address of a chat on the platform."""

    def connect(self) -> Adapter:
        """Return a new adapter, as a gateway creates it at start."""

    async def say(self, text: str) -> None:
        """Let a user send a message in the chat; return without waiting for the adapter."""

    async def send_malformed(self) -> None:
        """Let a malformed update arrive from the platform."""

    def shown(self) -> Sequence[str]:
        """Return the messages that users see in the chat, oldest first."""

    def menu(self) -> Sequence[str]:
        """Return the names of the commands in the platform's menu, in order."""

    async def cut(self) -> None:
        """Cut the connections on which updates arrive."""

    async def inject(self, fault: Fault | None) -> None:
        """Apply the fault to all messages sent from now on; None ends the fault."""


async def take(adapter: Adapter, number: int, *, acknowledge: bool = True) -> list[Update]:
    """Receive ``number`` updates and stop receiving; acknowledge each before the next if ``acknowledge``."""
    taken: list[Update] = []
    updates = adapter.receive()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(taken) < number:
                taken.append(await anext(updates))
                if acknowledge:
                    await adapter.acknowledge(taken[-1])
    finally:
        await _end(updates)
    return taken


async def _end(updates: AsyncIterator[Update]) -> None:
    # Generators have ``aclose``; other iterators need not have it.
    aclose = getattr(updates, "aclose", None)
    if aclose is not None:
        await aclose()


def texts(updates: Sequence[Update]) -> list[str]:
    """Return the texts of the updates, without malformed ones."""
    return [
        part.text
        for update in updates
        if isinstance(update, Inbound)
        for part in update.parts
        if isinstance(part, TextPart)
    ]


class ShowingContract:
    """Tests for adapters that send; each test gets a fresh ``service`` from a fixture of the subclass."""

    async def test_pieces_are_within_the_limit_and_always_the_same(self, service: Service) -> None:
        adapter, other = service.connect(), service.connect()
        can = adapter.capabilities
        parts = (TextPart(text=LONG * (1 + can.text_max // len(LONG))), TextPart(text="and this"))
        pieces = adapter.pieces(parts)
        assert pieces == adapter.pieces(parts) == other.pieces(parts)
        assert len(pieces) > 2
        for piece in pieces:
            assert isinstance(piece, TextPiece)
            assert 0 < text_size(piece.text, can.text_unit) <= can.text_max
        assert adapter.pieces(()) == ()
        await adapter.close()
        await other.close()

    async def test_media_keep_their_place_or_are_left_out(self, service: Service) -> None:
        adapter = service.connect()
        media = MediaPart(media_type="image/png", url="https://example.org/a.png")
        pieces = adapter.pieces((TextPart(text="before"), media, TextPart(text="after")))
        assert pieces[0] == TextPiece(text="before")
        assert pieces[-1] == TextPiece(text="after")
        await adapter.close()

    async def test_sent_messages_are_shown_in_order_with_a_receipt(self, service: Service) -> None:
        adapter = service.connect()
        for number in range(3):
            assert isinstance(await self._send(service, adapter, f"piece {number}", key=f"k-{number}"), Sent)
        await adapter.close()
        assert list(service.shown()) == ["piece 0", "piece 1", "piece 2"]

    async def test_an_unreachable_platform_is_a_temporary_rejection(self, service: Service) -> None:
        outcome = await self._send_with(service, "down")
        assert isinstance(outcome, Rejected)
        assert not outcome.permanent
        assert not outcome.dead_address
        assert not service.shown()

    async def test_a_message_is_edited_where_the_platform_can(self, service: Service) -> None:
        adapter = service.connect()
        sent = await self._send(service, adapter, "Hel", key="k-1")
        assert isinstance(sent, Sent)
        message_id = sent.message_id or "unknown"
        changed = Outgoing(to=service.address, piece=TextPiece(text="Hello"), key="k-1")
        outcomes = [await adapter.edit(changed, message_id=message_id) for _ in range(2)]
        await adapter.close()
        if adapter.capabilities.edits:
            assert all(isinstance(outcome, Sent) for outcome in outcomes), (
                "repeating the same edit counts as sent"
            )
            assert list(service.shown()) == ["Hello"]
        else:
            assert all(isinstance(outcome, Rejected) and outcome.permanent for outcome in outcomes)
            assert list(service.shown()) == ["Hel"]

    async def test_odd_texts_and_replies_never_raise(self, service: Service) -> None:
        adapter = service.connect()
        for number, text in enumerate(ODD):
            outgoing = Outgoing(
                to=service.address, piece=TextPiece(text=text), key=f"k-{number}", reply_to="never seen"
            )
            assert isinstance(await adapter.send(outgoing), Sent | Rejected | Unknown)
        await adapter.show_typing(service.address)
        await adapter.close()

    async def test_a_chat_and_a_thread_are_split_as_they_were_joined(self, service: Service) -> None:
        adapter = service.connect()
        chat = service.address.chat_id
        assert adapter.split_chat(chat) == (chat, None)
        assert adapter.split_chat(f"{chat}:42") == (chat, "42")
        await adapter.close()

    async def test_the_menu_is_filled_where_the_platform_has_one(self, service: Service) -> None:
        adapter = service.connect()
        await adapter.offer_commands(COMMANDS.commands)
        await adapter.offer_commands(COMMANDS.commands)
        await adapter.close()
        wanted = [command.name for command in COMMANDS.commands] if adapter.capabilities.has_menu else []
        assert list(service.menu()) == wanted

    async def _send_with(self, service: Service, fault: Fault) -> Outcome:
        adapter = service.connect()
        await service.inject(fault)
        outcome = await self._send(service, adapter, "hello", key="k-1")
        await adapter.close()
        return outcome

    async def _send(self, service: Service, adapter: Adapter, text: str, *, key: str) -> Outcome:
        outgoing = Outgoing(to=service.address, piece=TextPiece(text=text), key=key)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await adapter.send(outgoing)


class AdapterContract(ShowingContract):
    """The whole contract, for adapters that also receive, with all kinds of faults."""

    async def test_unacknowledged_updates_are_redelivered_after_a_restart(self, service: Service) -> None:
        await service.say("one")
        first = service.connect()
        [seen] = await take(first, 1, acknowledge=False)
        await first.close()
        second = service.connect()
        [again] = await take(second, 1)
        assert texts([seen]) == texts([again]) == ["one"]
        assert seen.ref == again.ref, "a redelivery must carry the same ref, or it is answered twice"
        await service.say("two")
        assert texts(await take(second, 1)) == ["two"], "an acknowledged update must not come again"
        await second.close()

    async def test_unacknowledged_updates_are_redelivered_on_the_same_adapter(self, service: Service) -> None:
        await service.say("one")
        adapter = service.connect()
        await take(adapter, 1, acknowledge=False)
        assert texts(await take(adapter, 1)) == ["one"]
        await adapter.close()

    async def test_refused_updates_are_not_redelivered(self, service: Service) -> None:
        await service.say("let me in")
        adapter = service.connect()
        [seen] = await take(adapter, 1, acknowledge=False)
        updates = adapter.receive()
        async with asyncio.timeout(PATIENCE_SECONDS):
            again = await anext(updates)
            await adapter.acknowledge(again, refused=Refused(reason="stranger", offer_pairing=False))
            await service.say("two")
            after = await anext(updates)
            await adapter.acknowledge(after)
        await _end(updates)
        await adapter.close()
        assert texts([seen, again, after]) == ["let me in", "let me in", "two"]

    async def test_a_cut_loses_no_update_and_redeliveries_keep_their_ref(self, service: Service) -> None:
        adapter = service.connect()
        updates = adapter.receive()
        await service.say("one")
        async with asyncio.timeout(PATIENCE_SECONDS):
            taken = [await anext(updates)]
            await adapter.acknowledge(taken[0])
            waiting = asyncio.ensure_future(anext(updates))
            await asyncio.sleep(0)
            await service.cut()
            await service.say("two")
            while texts(taken)[-1] != "two":
                try:
                    taken.append(await waiting)
                    await adapter.acknowledge(taken[-1])
                except (OSError, NotConnected):
                    updates = adapter.receive()  # as the gateway does
                waiting = asyncio.ensure_future(anext(updates))
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await _end(updates)
        await adapter.close()
        assert len({update.ref for update in taken}) == 2

    async def test_messages_arrive_in_order_each_with_its_own_ref(self, service: Service) -> None:
        said = [f"number {number}" for number in range(5)]
        for text in said:
            await service.say(text)
        adapter = service.connect()
        taken = await take(adapter, 5)
        await adapter.close()
        assert texts(taken) == said
        assert len({update.ref for update in taken}) == 5

    async def test_a_message_has_the_source_of_its_chat(self, service: Service) -> None:
        await service.say("hello")
        adapter = service.connect()
        [update] = await take(adapter, 1)
        await adapter.close()
        assert isinstance(update, Inbound)
        assert (update.source.platform, update.source.account) == (adapter.platform, adapter.account)
        assert Address.of(update.source) == service.address, "a reply must go to the chat of the message"
        assert update.source.user_id

    async def test_a_malformed_update_is_yielded_and_delays_no_other(self, service: Service) -> None:
        await service.send_malformed()
        await service.say("after it")
        adapter = service.connect()
        malformed, after = await take(adapter, 2)
        await adapter.close()
        assert isinstance(malformed, Malformed)
        assert malformed.ref
        assert malformed.raw
        assert malformed.reason
        assert texts([after]) == ["after it"]

    async def test_the_outcome_of_a_lost_message_is_unknown(self, service: Service) -> None:
        assert isinstance(await self._send_with(service, "lose the message"), Unknown)
        assert not service.shown()

    async def test_the_outcome_is_unknown_after_a_lost_receipt(self, service: Service) -> None:
        assert isinstance(await self._send_with(service, "lose the receipt"), Unknown)
        assert list(service.shown()) == ["hello"]

    async def test_a_rate_limit_has_a_retry_time(self, service: Service) -> None:
        outcome = await self._send_with(service, "limit")
        assert isinstance(outcome, Rejected)
        assert outcome.retry_after
        assert not outcome.permanent
        assert not service.shown()

    async def test_a_permanent_refusal_is_not_retried(self, service: Service) -> None:
        outcome = await self._send_with(service, "refuse permanently")
        assert isinstance(outcome, Rejected)
        assert outcome.permanent
        assert outcome.reason
        assert not outcome.dead_address

    async def test_a_dead_address_differs_from_a_refused_message(self, service: Service) -> None:
        outcome = await self._send_with(service, "dead")
        assert isinstance(outcome, Rejected)
        assert outcome.dead_address

    async def test_after_any_fault_the_same_adapter_sends_again(self, service: Service) -> None:
        adapter = service.connect()
        faults: tuple[Fault, ...] = ("down", "lose the message", "lose the receipt", "limit", "dead")
        for fault in faults:
            await service.inject(fault)
            await self._send(service, adapter, fault, key=f"k-{fault}")
        await service.inject(None)
        assert isinstance(await self._send(service, adapter, "recovered", key="k-recovered"), Sent)
        await adapter.close()
        assert service.shown()[-1] == "recovered"

    async def test_the_same_key_is_shown_once_where_the_platform_deduplicates(self, service: Service) -> None:
        adapter = service.connect()
        await service.inject("lose the receipt")
        await self._send(service, adapter, "once", key="k-1")
        await service.inject(None)
        assert isinstance(await self._send(service, adapter, "once", key="k-1"), Sent)
        assert isinstance(await self._send(service, adapter, "once", key="k-2"), Sent)
        await adapter.close()
        assert len(service.shown()) == (2 if adapter.capabilities.deduplicates else 3)
