"""Accept a message: who says it, which conversation it belongs to, whether that starts over, and a stored item.

Everything an acknowledgement promises is in this one transaction. A delivery that comes again changes nothing.
"""

from dataclasses import replace

from keryx.config import Settings
from keryx.domain.access import OWN_SURFACES, Refused, audience_of, may_speak
from keryx.domain.busy import BARE_OVERRIDE, BusyMode, on_arrival, split_override
from keryx.domain.command import STOP, ParsedCommand, UnknownCommand, parse_command
from keryx.domain.inbox import Inbound
from keryx.domain.message import Part, TextPart, text_of
from keryx.domain.outbox import DeliveryKind
from keryx.domain.person import Person
from keryx.domain.reset import ResetReason, counted_from, reset_due, reset_notice
from keryx.domain.route import Address
from keryx.domain.session import SessionId
from keryx.domain.session_key import SessionKey, escape_part, key_for
from keryx.domain.source import Source
from keryx.domain.turn import gives_way
from keryx.errors import InvalidValue
from keryx.ids import Ids
from keryx.store.database import Contended, Tx
from keryx.store.tables import (
    addresses,
    branches,
    feed,
    inbox,
    keys,
    outbox,
    people,
    processes,
    sessions,
    turns,
)
from keryx.transactions.answer_question import answer_question
from keryx.transactions.fail_turn import find_rollback_point, stop_session
from keryx.transactions.flush_session import give_way
from keryx.transactions.link_accounts import Linked, enter_link
from keryx.transactions.manage_access import resolve_source
from keryx.transactions.open_session import Handed, open_session
from keryx.transactions.pair_stranger import YOUR_CODE, PairingOffered, PairingRefused, offer_pairing
from keryx.transactions.run_command import CommandContext, NeedsAnswer, run_command
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The message is stored and will have a fate."""

    inbox_id: int
    session_id: SessionId
    opened: bool
    reset: ResetReason | None
    needs_answer: NeedsAnswer | None = None
    """A command whose answer the surface has to find, because it changes nothing."""
    declined: str | None = None
    """Why a command did nothing."""
    queued: int | None = None
    """The item whose answer is the command's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """This delivery was accepted before."""

    inbox_id: int
    session_id: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The conversation a message belongs to."""

    session_id: SessionId
    key: SessionKey
    opened: bool
    reset: ResetReason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message of somebody who may speak, its ids resolved, and what it is judged by."""

    inbound: Inbound
    person: Person
    settings: Settings
    ids: Ids

    @property
    def source(self) -> Source:
        """Where it comes from."""
        return self.inbound.source


def accept_message(
    tx: Tx, inbound: Inbound, *, settings: Settings, ids: Ids
) -> Accepted | Duplicate | Refused:
    """Store what a platform delivered, or say why not; only after the commit may it be acknowledged."""
    account = inbound.source.account or ""
    known = inbox.find_by_ref(tx, platform=inbound.source.platform, account=account, ref=inbound.ref)
    if known is not None:
        return Duplicate(inbox_id=known.id, session_id=SessionId(known.session_id))
    inbound = replace(inbound, source=resolve_source(tx, inbound.source))
    command = parse_command(text_of(inbound.parts))
    source, pairs = inbound.source, inbound.source.platform in settings.pairing_platforms
    verdict = may_speak(_find_speaker(tx, source), chat_type=source.chat_type, pairing=pairs)
    if isinstance(verdict, Refused):
        return _meet_stranger(tx, inbound, verdict, command, settings=settings, ids=ids)
    incoming = Incoming(inbound=inbound, person=verdict.person, settings=settings, ids=ids)
    place = _enter(tx, incoming)
    if command is None:
        return _queue(tx, incoming, place)
    return _command(tx, incoming, place, command)


def _find_speaker(tx: Tx, source: Source) -> Person | None:
    if source.user_id is None:
        return people.ensure_owner(tx) if source.platform in OWN_SURFACES else None
    return people.find_by_identity(
        tx, platform=source.platform, account=source.account or "", user_id=source.user_id
    ) or people.find_by_identity(tx, platform=source.platform, account="", user_id=source.user_id)


def _meet_stranger(
    tx: Tx,
    inbound: Inbound,
    refused: Refused,
    command: ParsedCommand | UnknownCommand | None,
    *,
    settings: Settings,
    ids: Ids,
) -> Accepted | Refused:
    """Say nothing, or how to be let in; a stranger with the code of ``/link`` is somebody we know."""
    source = inbound.source
    if refused.reason == "blocked" or source.user_id is None or source.chat_type != "dm":
        return refused
    linked = _enter_code(tx, source, command)
    if linked is not None:
        incoming = Incoming(inbound=inbound, person=linked.person, settings=settings, ids=ids)
        place = _enter(tx, incoming)
        reply = f"This account and {linked.source.describe()} are both {linked.person.name} now."
        return _done(tx, incoming, place, reply=reply)
    if refused.offer_pairing:
        offer = offer_pairing(tx, source, ids)
        if isinstance(offer, PairingOffered):
            text = YOUR_CODE.format(code=offer.code, number=offer.request_no)
            _say(tx, source, text, kind="pairing", session_id=None, ids=ids)
        if isinstance(offer, PairingRefused):
            return replace(refused, offer_pairing=False)
    return refused


def _enter_code(tx: Tx, source: Source, command: ParsedCommand | UnknownCommand | None) -> Linked | None:
    if not isinstance(command, ParsedCommand) or command.name != "link":
        return None
    try:
        outcome = enter_link(tx, command.arguments, source=source, person_id=None)
    except InvalidValue:
        return None  # not even the form of a code
    return outcome if isinstance(outcome, Linked) else None


def _enter(tx: Tx, incoming: Incoming) -> Place:
    """Find or open the conversation, and greet somebody at the first message ever, whatever became of it."""
    place = _find_place(tx, incoming)
    if incoming.source.is_passing:
        return place  # nobody is there to be greeted, and soon the place is not either
    addresses.note_inbound(tx, Address.of(incoming.source))
    if people.mark_welcomed(tx, incoming.person.id) and incoming.settings.welcome:
        _say(tx, incoming.source, incoming.settings.welcome, session_id=place.session_id, ids=incoming.ids)
    return place


def _find_place(tx: Tx, incoming: Incoming) -> Place:
    source, person = incoming.source, incoming.person
    audience_id = people.ensure_audience(tx, audience_of(source, person.id))
    people.join_audience(tx, person_id=person.id, audience_id=audience_id)
    key, current = _find_key(tx, incoming, audience_id=audience_id)
    if current is None:
        handed = Handed(profile=incoming.settings.profile)
        session_id = open_session(tx, incoming.ids, source=source, owner=person, key=key, handed=handed)
        return Place(session_id=session_id, key=key, opened=True, reset=None)
    session_id = SessionId(current.session_id)
    sessions.lock_session(tx, session_id)
    pointed = keys.find_key(tx, key)
    if pointed is None or pointed.session_id != session_id:
        raise Contended  # while we waited for the session, the key was pointed elsewhere
    session = sessions.get_session(tx, session_id)
    reason = _reset_due(tx, session, incoming)
    if reason is not None or session.state == "closed":
        return _start_over(tx, incoming, session, key=key, reason=reason)
    if source.chat_name and sessions.set_display_name(tx, session_id, source.chat_name):
        feed.add_event(tx, session_id, "session.changed")
    return Place(session_id=session_id, key=key, opened=False, reset=None)


def _find_key(tx: Tx, incoming: Incoming, *, audience_id: int) -> tuple[SessionKey, keys.KeyRecord | None]:
    """Return the key of the conversation and where it points, if it has pointed anywhere."""
    source, settings = incoming.source, incoming.settings
    key = key_for(
        source,
        settings.scope,
        profile=settings.profile,
        first_account=settings.first_accounts.get(source.platform),
        person_id=incoming.person.id,
    )
    current = keys.find_key(tx, key)
    while current is not None and not _hears(tx, incoming, current, audience_id=audience_id):
        # Several people may share the spelling of a key (one bot, scope ``platform``), but never a conversation.
        key = SessionKey(f"{key}:{escape_part(f'audience:{audience_id}')}")
        current = keys.find_key(tx, key)
    return key, current


def _hears(tx: Tx, incoming: Incoming, current: keys.KeyRecord, *, audience_id: int) -> bool:
    """Say whether what is said under a key is said to who speaks now, under this or, since linked, another name."""
    if current.audience_id == audience_id:
        return True
    is_private = incoming.source.chat_type == "dm"
    return is_private and people.hears(tx, person_id=incoming.person.id, audience_id=current.audience_id)


def _reset_due(tx: Tx, session: sessions.SessionRecord, incoming: Incoming) -> ResetReason | None:
    """Judge by the activity before this message, and only while nothing of the session is under way."""
    policy = incoming.settings.reset.resolve(incoming.source.platform, incoming.source.chat_type)
    said_at = session.last_active_at
    if session.state == "closed" or reset_due(policy, last_active_at=said_at, now=tx.now) is None:
        return None  # whatever else is looked at can only put it off
    live = turns.find_live_turn(tx, session.id)
    # What Keryx does by itself is no conversation under way: it goes on in the session that ends.
    is_busy = live is not None and not gives_way(live.purpose)
    if is_busy or inbox.count_open(tx, session.id):
        return None
    shown_since = [surface.since_at for surface in keys.list_keys(tx, session.id)]
    return reset_due(
        policy,
        last_active_at=counted_from(said_at, shown_since=shown_since),
        now=tx.now,
        pinned_by_process=processes.session_pinned(tx, session.id),
    )


def _start_over(
    tx: Tx, incoming: Incoming, old: sessions.SessionRecord, *, key: SessionKey, reason: ResetReason | None
) -> Place:
    """Open the next session of all the old one's surfaces; after a reset, both sides are told, once."""
    source = incoming.source
    policy = incoming.settings.reset.resolve(source.platform, source.chat_type)
    notice = None if reason is None else reset_notice(policy, reason)
    handed = Handed(
        profile=old.profile,
        audience_id=old.audience_id,
        display_name=old.display_name,
        project_id=old.project_id,
        workspace=old.workspace,
        model=old.model,
        model_settings=old.model_settings,
        personality=old.personality,
        reset_reason=None if notice is None else notice.agent,
    )
    owner = people.get_person(tx, old.owner_id)
    session_id = open_session(tx, incoming.ids, source=old.source, owner=owner, handed=handed)
    for surface in keys.list_keys(tx, old.id):
        keys.point_key(
            tx,
            SessionKey(surface.key),
            session_id=session_id,
            source=surface.source,
            audience_id=surface.audience_id,
        )
    if sessions.close_session(tx, old.id, reason="reset"):
        feed.add_event(tx, old.id, "session.closed")
    if notice is not None:
        branches.add_link(tx, kind="reset", from_session_id=old.id, to_session_id=session_id)
        _say(tx, source, notice.user, session_id=session_id, ids=incoming.ids)
    return Place(session_id=session_id, key=key, opened=True, reset=reason)


def _queue(tx: Tx, incoming: Incoming, place: Place) -> Accepted:
    """Store a message to be answered, and let it act on the turn that runs."""
    wanted, parts = _override(incoming.inbound.parts)
    if wanted is not None and not parts:
        return _bare(tx, incoming, place, wanted)
    turn = None if place.opened else turns.find_live_turn(tx, place.session_id)
    if turn is not None and turn.state == "waiting" and wanted is None:
        answered = answer_question(tx, incoming.inbound, turn=turn, person_id=incoming.person.id)
        if answered is not None:
            return Accepted(inbox_id=answered, session_id=place.session_id, opened=False, reset=place.reset)
    mode = wanted or incoming.settings.busy.mode_for(incoming.source)
    if turn is not None:
        mode = _act(tx, incoming, turn, mode)
    inbox_id = inbox.add_item(
        tx,
        session_id=place.session_id,
        kind="message",
        source=incoming.source,
        ref=incoming.inbound.ref,
        parts=parts,
        person_id=incoming.person.id,
        busy_mode=mode,
        sent_at=incoming.inbound.sent_at,
    )
    feed.add_event(tx, place.session_id, "inbox", inbox_id)
    return Accepted(inbox_id=inbox_id, session_id=place.session_id, opened=place.opened, reset=place.reset)


def _override(parts: tuple[Part, ...]) -> tuple[BusyMode | None, tuple[Part, ...]]:
    """Take a ``!steer …`` off the first text; with nothing behind it, nothing is left."""
    if not isinstance(parts[0], TextPart):
        return None, parts
    mode, rest = split_override(parts[0].text)
    if not rest.strip() and len(parts) == 1:
        return mode, () if mode else parts
    return mode, (TextPart(text=rest), *parts[1:])


def _bare(tx: Tx, incoming: Incoming, place: Place, mode: BusyMode) -> Accepted:
    """Take a mode without a message for what it can mean: ``!stop`` is ``/stop``, and nothing reaches the model."""
    if mode == "interrupt":
        return _command(tx, incoming, place, STOP)
    return _done(tx, incoming, place, reply=BARE_OVERRIDE.format(mode=mode))


def _act(tx: Tx, incoming: Incoming, turn: turns.Turn, mode: BusyMode) -> BusyMode:
    """Do to the session's turn what the message asks for, and return the mode it waits in."""
    session_id = SessionId(turn.session_id)
    if gives_way(turn.purpose) and give_way(tx, session_id):
        return mode
    pure = mode == "rollback" and find_rollback_point(tx, turn) is not None
    arrival = on_arrival(mode, turn_running=True, effects=("pure",) if pure else ("once",))
    if arrival.action in ("stop", "rollback"):
        stop_session(tx, session_id, holder=incoming.ids.token())
    if arrival.notice is None:
        return mode
    _say(tx, incoming.source, arrival.notice, session_id=session_id, ids=incoming.ids)
    return "interrupt"


def _command(tx: Tx, incoming: Incoming, place: Place, command: ParsedCommand | UnknownCommand) -> Accepted:
    """Carry out a command in the transaction that accepts it; its reply goes out like any other."""
    if isinstance(command, UnknownCommand):
        return replace(_done(tx, incoming, place, reply=command.reply), declined=command.reply)
    context = CommandContext(
        session_id=place.session_id,
        key=place.key,
        person=incoming.person,
        source=incoming.source,
        settings=incoming.settings,
        ids=incoming.ids,
    )
    outcome = run_command(tx, command, context=context)
    place = replace(place, session_id=outcome.session_id)
    done = _done(tx, incoming, place, reply=outcome.reply, needs_answer=outcome.needs_answer)
    return replace(done, declined=outcome.reply if outcome.is_declined else None, queued=outcome.queued)


def _done(
    tx: Tx, incoming: Incoming, place: Place, *, reply: str | None, needs_answer: NeedsAnswer | None = None
) -> Accepted:
    """Store a command as done, with what is said back; or as waiting for the surface that has to answer it."""
    inbox_id = inbox.add_item(
        tx,
        session_id=place.session_id,
        kind="command",
        source=incoming.source,
        ref=incoming.inbound.ref,
        parts=incoming.inbound.parts,
        person_id=incoming.person.id,
        sent_at=incoming.inbound.sent_at,
        fate=None if needs_answer else "command",
    )
    if reply:
        _say(tx, incoming.source, reply, session_id=place.session_id, ids=incoming.ids)
    feed.add_event(tx, place.session_id, "inbox", inbox_id)
    return Accepted(
        inbox_id=inbox_id,
        session_id=place.session_id,
        opened=place.opened,
        reset=place.reset,
        needs_answer=needs_answer,
    )


def _say(
    tx: Tx, source: Source, text: str, *, session_id: str | None, ids: Ids, kind: DeliveryKind = "notice"
) -> None:
    added = outbox.add_delivery(
        tx,
        address=Address.of(source),
        kind=kind,
        parts=(TextPart(text=text),),
        idempotency_key=ids.token(),
        session_id=session_id,
        reply_to=source.message_id,
    )
    if session_id is not None:
        feed.add_event(tx, session_id, "delivery", added)
