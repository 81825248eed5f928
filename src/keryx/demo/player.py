"""Play sample conversations into a store, through the transactions that a gateway runs.

The player controls the time, which only moves forward. The same script, time and ids give the same rows.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import field, replace
from typing import Final, TypeVar

from keryx.clock import SECOND, Micros
from keryx.commands.table import COMMANDS
from keryx.config import Settings
from keryx.core.accounts.transactions import Connector, release_connector, take_connector
from keryx.core.conversations.rules.message import (
    NewMessage,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from keryx.core.conversations.rules.part import MediaPart, Part
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Rejected, Sent
from keryx.core.deliveries.transactions.claim_deliveries import claim_deliveries, record_delivery
from keryx.core.media.transactions import Blob, keep_blob
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.reset import ResetPolicies, ResetPolicy
from keryx.core.turns.transactions.accept_message import Accepted, accept_message
from keryx.core.turns.transactions.begin_turn import BegunTurn, begin_turn
from keryx.core.turns.transactions.fail_turn import Failure, fail_turn, stop_turn
from keryx.core.turns.transactions.finish_turn import Reply, finish_turn
from keryx.core.turns.transactions.record_step import (
    ask_approval,
    record_calls,
    record_prompt,
    record_result,
    start_call,
)
from keryx.demo.script import SampleExchange
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.values import dataclass

T = TypeVar("T")

HOLDER: Final = "demo"
SETTINGS: Final = Settings(
    welcome=None,
    reset=ResetPolicies(by_place={("telegram", "dm"): ResetPolicy(mode="daily")}),
)
THINKS: Final[Micros] = 7 * SECOND
"""The duration of a turn."""
CONTEXT_TOKENS: Final = 900
"""The tokens that a model reads besides the conversation."""
INPUT_MICROS: Final = 3
OUTPUT_MICROS: Final = 15
PICTURE_SIDES: Final = (120, 80)
SKY: Final = (145, 185, 230)
GROUND: Final = (220, 175, 140)


@dataclass(slots=True)
class DemoClock:
    """A clock that the player sets; its lease time stands still, so no lease expires."""

    wall: Micros

    def now(self) -> Micros:
        """Return the wall time."""
        return self.wall

    def monotonic(self) -> Micros:
        """Return the lease time."""
        return SECOND

    def boot_id(self) -> str:
        """Return an id that no machine has, so that no lease taken here is valid later."""
        return "demo"

    def reach(self, when: Micros) -> None:
        """Advance the wall time to ``when``, unless it is already later."""
        self.wall = max(self.wall, when)


@dataclass(slots=True, kw_only=True)
class Player:
    """Plays messages and answers; every call returns after its turn has ended and its deliveries are sent."""

    database: Database
    clock: DemoClock
    ids: Ids
    connectors: dict[str, Connector] = field(default_factory=dict)

    async def at(self, when: Micros, work: Callable[[Tx], T]) -> T:
        """Run a transaction at the time ``when``."""
        self.clock.reach(when)
        return await self.database.write(work)

    async def connect(self, platforms: tuple[str, ...]) -> None:
        """Take the connector leases of the platforms."""

        def take(tx: Tx) -> None:
            for platform in platforms:
                taken = take_connector(tx, platform=platform, account="", holder=HOLDER)
                assert taken is not None, "a new store has no other holder"
                self.connectors[platform] = taken

        await self.database.write(take)

    async def disconnect(self) -> None:
        """Deliver the remaining output, and release the connector leases."""

        def release(tx: Tx) -> None:
            for platform, connector in self.connectors.items():
                self._deliver(tx, platform, None)
                release_connector(tx, connector)

        await self.database.write(release)

    async def play(
        self, when: Micros, source: Source, exchange: SampleExchange, *, model: str | None = None
    ) -> SessionId:
        """Send a message and answer it seconds later; return its session."""
        session_id = await self.at(when, lambda tx: self._say(tx, source, exchange))
        await self.at(
            when + THINKS, lambda tx: self.answer(tx, session_id, source.platform, exchange, model=model)
        )
        return session_id

    def _say(self, tx: Tx, source: Source, exchange: SampleExchange) -> SessionId:
        parts: tuple[Part, ...] = (TextPart(text=exchange.said),)
        blob = None if exchange.picture is None else _picture(tx.now)
        if blob is not None:
            media = MediaPart(
                media_type=blob.media_type, blob=blob.hash, name=exchange.picture, size_bytes=blob.size_bytes
            )
            parts = (*parts, media)
        ref = self.ids.token()
        inbound = Inbound(source=replace(source, message_id=ref[:8]), ref=ref, parts=parts, sent_at=tx.now)
        accepted = accept_message(tx, inbound, settings=SETTINGS, ids=self.ids, commands=COMMANDS)
        assert isinstance(accepted, Accepted), "all authors in the script may speak"
        if blob is not None:
            keep_blob(tx, accepted.session_id, blob)
        return accepted.session_id

    def answer(
        self,
        tx: Tx,
        session_id: SessionId | None,
        platform: str,
        exchange: SampleExchange,
        *,
        model: str | None = None,
    ) -> None:
        """Run the next turn of a session (None: of any session), if there is one, and deliver its output."""
        begun = begin_turn(tx, holder=HOLDER, session_id=session_id)
        if begun is not None:
            if model is not None:
                record_prompt(tx, begun.held, model=model, prompt="A demo.", tools="[]")
            self._run(tx, begun, exchange)
        self._deliver(tx, platform, exchange.undelivered)

    def _run(self, tx: Tx, begun: BegunTurn, exchange: SampleExchange) -> None:
        if exchange.calls:
            self._call(tx, begun, exchange)
        said = None if exchange.answer is None else _message((TextPart(text=exchange.answer),), exchange.said)
        if exchange.asks is not None:
            call_id = f"call-{begun.turn_id}-{len(exchange.calls)}"
            ask_approval(tx, begun.held, call_id=call_id, question=exchange.asks, ids=self.ids)
        elif exchange.failed is not None:
            failure = Failure(reason=exchange.failed)
            fail_turn(tx, begun.held, failure=failure, partial=said, ids=self.ids)
        elif exchange.stopped:
            stop_turn(tx, begun.held, partial=said)
        else:
            finish_turn(tx, begun.held, reply=Reply(message=said, to=exchange.to), ids=self.ids)

    def _call(self, tx: Tx, begun: BegunTurn, exchange: SampleExchange) -> None:
        """Record the calls of a turn and their results; a call that needs approval gets no result yet."""
        calls = [(f"call-{begun.turn_id}-{number}", call) for number, call in enumerate(exchange.calls, 1)]
        thought = () if exchange.thinking is None else (ThinkingPart(text=exchange.thinking),)
        parts = [
            ToolCallPart(call_id=call_id, name=call.name, arguments=dict(call.arguments), effect=call.effect)
            for call_id, call in calls
        ]
        message = _message((*thought, *parts), exchange.said)
        record_calls(tx, begun.held, message=message, ids=self.ids)
        for call_id, call in calls:
            if call.effect == "ask":
                continue
            start_call(tx, begun.held, call_id=call_id)
            result = ToolResultPart(call_id=call_id, name=call.name, output=call.output)
            record_result(tx, begun.held, result=NewMessage(role="tool", parts=(result,)))

    def _deliver(self, tx: Tx, platform: str, undelivered: str | None) -> None:
        connector = self.connectors[platform]
        while claimed := claim_deliveries(tx, connector):
            for delivery in claimed:
                outcome: Sent | Rejected = Sent(message_id=f"m{delivery.id}")
                if undelivered is not None:
                    outcome = Rejected(reason=undelivered, permanent=True, dead_address=True)
                record_delivery(tx, connector, delivery.id, outcome, deduplicates=False)


def _message(parts: tuple[Part, ...], asked: str) -> NewMessage:
    """Return a model's message with plausible usage."""
    texts = (part.text if isinstance(part, TextPart | ThinkingPart) else str(part) for part in parts)
    written = sum(map(len, texts)) // 4 + 3
    read = CONTEXT_TOKENS + len(asked) // 4
    return NewMessage(
        role="assistant",
        parts=parts,
        input_tokens=read,
        cached_tokens=read * 3 // 4,
        output_tokens=written,
        cost_micros=read * INPUT_MICROS + written * OUTPUT_MICROS,
        finish_reason="stop",
    )


def _picture(now: Micros) -> Blob:
    """Return a small picture of a courtyard and the sky, as PNG."""
    width, height = PICTURE_SIDES
    rows = b"".join((b"\0" + bytes(colour) * width) * (height // 2) for colour in (SKY, GROUND))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows, 9)),
            (b"IEND", b""),
        )
    )
    digest = hashlib.sha256(data).hexdigest()
    return Blob(hash=digest, media_type="image/png", size_bytes=len(data), data=data, created_at=now)
