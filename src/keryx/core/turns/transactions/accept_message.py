"""Accept a message: find its author and session, reset the session if that is due, and store an inbox item.

This one transaction does everything that the acknowledgement promises. A redelivery changes nothing.
"""

from dataclasses import replace
from typing import Any

from keryx.config import Settings
from keryx.core.approvals.transactions.decide_approval import answer_question
from keryx.core.conversations.rules.command import ParsedCommand, UnknownCommand
from keryx.core.conversations.rules.message import Part, TextPart, text_of
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.transactions.command_context import CommandContext, Commands, NeedsAnswer
from keryx.core.conversations.transactions.enter_session import EnteredSession, enter_session
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.tables import addresses
from keryx.core.deliveries.transactions.queue_delivery import queue_reply
from keryx.core.people.rules.access import OWN_SURFACES, Refused, may_speak
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.people.transactions.link_accounts import Linked, enter_link
from keryx.core.people.transactions.manage_access import resolve_source
from keryx.core.people.transactions.pair_stranger import (
    YOUR_CODE,
    IssuedCode,
    PairingRefused,
    offer_pairing,
)
from keryx.core.turns.rules.busy import BARE_OVERRIDE, ROLLBACK_REFUSED, BusyMode, split_override, stops_turn
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.turns.rules.reset import ResetReason
from keryx.core.turns.rules.turn import yields_to_others
from keryx.core.turns.tables import inbox, turns
from keryx.core.turns.transactions.fail_turn import find_rollback_point, stop_session
from keryx.core.turns.transactions.flush_session import give_way
from keryx.core.turns.transactions.inbox_items import queue_item
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Tx
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The message is stored, and its inbox item will get a fate."""

    inbox_id: int
    session_id: SessionId
    opened: bool
    reset: ResetReason | None
    needs_answer: NeedsAnswer | None = None
    """The question of a command that only a running surface can answer."""
    declined: str | None = None
    """Why a command was declined."""
    queued: int | None = None
    """The item whose answer is the command's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The message was accepted before."""

    inbox_id: int
    session_id: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message of a person who may speak, with what decides about it."""

    inbound: Inbound
    person: Person
    settings: Settings
    ids: Ids
    commands: Commands

    @property
    def source(self) -> Source:
        """The source of the message."""
        return self.inbound.source


def accept_message(
    tx: Tx, inbound: Inbound, *, settings: Settings, ids: Ids, commands: Commands
) -> Accepted | Duplicate | Refused:
    """Store a message, or return why not. Acknowledge it to the platform only after the commit."""
    account = inbound.source.account or ""
    known = inbox.find_by_ref(tx, platform=inbound.source.platform, account=account, ref=inbound.ref)
    if known is not None:
        return Duplicate(inbox_id=known.id, session_id=SessionId(known.session_id))
    inbound = replace(inbound, source=resolve_source(tx, inbound.source))
    command = commands.parse(text_of(inbound.parts))
    source, pairs = inbound.source, inbound.source.platform in settings.pairing_platforms
    verdict = may_speak(_find_speaker(tx, source), chat_type=source.chat_type, pairing=pairs)
    if isinstance(verdict, Refused):
        return _answer_stranger(tx, inbound, verdict, settings=settings, ids=ids, commands=commands)
    incoming = Incoming(inbound=inbound, person=verdict.person, settings=settings, ids=ids, commands=commands)
    place = _enter(tx, incoming)
    if command is None:
        return _accept_text(tx, incoming, place)
    return _run_command(tx, incoming, place, command)


def _find_speaker(tx: Tx, source: Source) -> Person | None:
    if source.user_id is None:
        return people.ensure_owner(tx) if source.platform in OWN_SURFACES else None
    return people.find_by_identity(
        tx, platform=source.platform, account=source.account or "", user_id=source.user_id
    ) or people.find_by_identity(tx, platform=source.platform, account="", user_id=source.user_id)


def _answer_stranger(
    tx: Tx,
    inbound: Inbound,
    refused: Refused,
    *,
    settings: Settings,
    ids: Ids,
    commands: Commands,
) -> Accepted | Refused:
    """Offer pairing in a private chat, or refuse; a stranger with a valid code of ``/link`` becomes that person."""
    source = inbound.source
    if refused.reason == "blocked" or source.user_id is None or source.chat_type != "dm":
        return refused
    linked = _enter_code(tx, source, commands.parse(text_of(inbound.parts)))
    if linked is not None:
        incoming = Incoming(
            inbound=inbound, person=linked.person, settings=settings, ids=ids, commands=commands
        )
        place = _enter(tx, incoming)
        return _store_command(tx, incoming, place, reply=linked.reply)
    if refused.offer_pairing:
        offer = offer_pairing(tx, source, ids)
        if isinstance(offer, IssuedCode):
            text = YOUR_CODE.format(code=offer.code, number=offer.request_no)
            queue_reply(tx, source, text, kind="pairing", ids=ids)
        if isinstance(offer, PairingRefused):
            return replace(refused, offer_pairing=False)
    return refused


def _enter_code(tx: Tx, source: Source, command: ParsedCommand | UnknownCommand | None) -> Linked | None:
    if not isinstance(command, ParsedCommand) or command.name != "link":
        return None
    try:
        outcome = enter_link(tx, command.arguments, source=source, person_id=None)
    except InvalidValue:
        return None  # not a code
    return outcome if isinstance(outcome, Linked) else None


def _enter(tx: Tx, incoming: Incoming) -> EnteredSession:
    """Find or open the session, and welcome a person at the first message."""
    place = enter_session(
        tx, incoming.source, person=incoming.person, settings=incoming.settings, ids=incoming.ids
    )
    if incoming.source.is_one_shot:
        return place  # an address for one answer: no welcome, and no record of activity
    addresses.record_inbound(tx, Address.of(incoming.source))
    if people.mark_welcomed(tx, incoming.person.id) and incoming.settings.welcome:
        queue_reply(
            tx, incoming.source, incoming.settings.welcome, session_id=place.session_id, ids=incoming.ids
        )
    return place


def _accept_text(tx: Tx, incoming: Incoming, place: EnteredSession) -> Accepted:
    """Store a message, and apply its busy mode to the live turn."""
    wanted, parts = _split_mode(incoming.inbound.parts)
    if wanted is not None and not parts:
        return _accept_bare_mode(tx, incoming, place, wanted)
    turn = None if place.opened else turns.find_live_turn(tx, place.session_id)
    if turn is not None and turn.state == "waiting" and wanted is None:
        answered = answer_question(tx, incoming.inbound, turn=turn, person_id=incoming.person.id)
        if answered is not None:
            return Accepted(inbox_id=answered, session_id=place.session_id, opened=False, reset=place.reset)
    mode = wanted or incoming.settings.busy.mode_for(incoming.source)
    if turn is not None:
        mode = _apply_mode(tx, incoming, turn, mode)
    return _store(tx, incoming, place, kind="message", parts=parts, busy_mode=mode)


def _store(tx: Tx, incoming: Incoming, place: EnteredSession, **item: Any) -> Accepted:
    """Store the message as an inbox item."""
    inbox_id = queue_item(
        tx,
        session_id=place.session_id,
        source=incoming.source,
        ref=incoming.inbound.ref,
        person_id=incoming.person.id,
        sent_at=incoming.inbound.sent_at,
        **item,
    )
    return Accepted(inbox_id=inbox_id, session_id=place.session_id, opened=place.opened, reset=place.reset)


def _split_mode(parts: tuple[Part, ...]) -> tuple[BusyMode | None, tuple[Part, ...]]:
    """Split a busy mode (``!steer …``) off the first text; a bare mode leaves no parts."""
    if not isinstance(parts[0], TextPart):
        return None, parts
    mode, rest = split_override(parts[0].text)
    if not rest.strip() and len(parts) == 1:
        return mode, () if mode else parts
    return mode, (TextPart(text=rest), *parts[1:])


def _accept_bare_mode(tx: Tx, incoming: Incoming, place: EnteredSession, mode: BusyMode) -> Accepted:
    """Handle a busy mode without a message: ``!stop`` means ``/stop``, any other mode gets an explanation."""
    if mode == "interrupt":
        stop = incoming.commands.parse("/stop")
        assert stop is not None, "/stop is a command"
        return _run_command(tx, incoming, place, stop)
    return _store_command(tx, incoming, place, reply=BARE_OVERRIDE.format(mode=mode))


def _apply_mode(tx: Tx, incoming: Incoming, turn: turns.Turn, mode: BusyMode) -> BusyMode:
    """Apply a message's busy mode to the session's turn, and return the mode of its item."""
    session_id = SessionId(turn.session_id)
    if yields_to_others(turn.purpose) and give_way(tx, session_id):
        return mode
    refused = mode == "rollback" and find_rollback_point(tx, turn) is None
    if stops_turn(mode):
        stop_session(tx, session_id, holder=incoming.ids.token())
    if not refused:
        return mode
    queue_reply(tx, incoming.source, ROLLBACK_REFUSED, session_id=session_id, ids=incoming.ids)
    return "interrupt"


def _run_command(
    tx: Tx, incoming: Incoming, place: EnteredSession, command: ParsedCommand | UnknownCommand
) -> Accepted:
    """Run a command and queue its reply, in the transaction that accepts it."""
    if isinstance(command, UnknownCommand):
        return replace(_store_command(tx, incoming, place, reply=command.reply), declined=command.reply)
    context = CommandContext(
        session_id=place.session_id,
        key=place.key,
        person=incoming.person,
        source=incoming.source,
        settings=incoming.settings,
        ids=incoming.ids,
        commands=incoming.commands,
        give_way=give_way,
    )
    outcome = incoming.commands.run(tx, command, context=context)
    place = replace(place, session_id=outcome.session_id)
    stored = _store_command(tx, incoming, place, reply=outcome.reply, needs_answer=outcome.needs_answer)
    return replace(stored, declined=outcome.reply if outcome.is_declined else None, queued=outcome.queued)


def _store_command(
    tx: Tx,
    incoming: Incoming,
    place: EnteredSession,
    *,
    reply: str | None,
    needs_answer: NeedsAnswer | None = None,
) -> Accepted:
    """Store a command as done and queue its reply; or as ready, if a surface has to answer it."""
    if reply:
        queue_reply(tx, incoming.source, reply, session_id=place.session_id, ids=incoming.ids)
    fate = None if needs_answer else "command"
    accepted = _store(tx, incoming, place, kind="command", parts=incoming.inbound.parts, fate=fate)
    return replace(accepted, needs_answer=needs_answer)
