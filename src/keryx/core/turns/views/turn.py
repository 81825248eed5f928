"""What a turn is about: whom it answers, what was said, and the calls that are still open."""

from dataclasses import replace
from typing import TypeAlias

from keryx.core.approvals.rules.approval import ApprovalState
from keryx.core.approvals.tables import approvals
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.views.prompt_facts import last_said, show_context
from keryx.core.conversations.rules.message import Message, ToolCallPart
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.session_settings import ModelSettings, decode_model_settings
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, sessions
from keryx.core.conversations.views.transcript import model_messages
from keryx.core.deliveries.tables import outbox
from keryx.core.people.rules.access import Grant
from keryx.core.people.tables import access, people
from keryx.core.turns.rules.delegation import Delegation
from keryx.core.turns.tables import inbox, turns
from keryx.core.values.role import Role
from keryx.core.values.turn_states import StepEffect, StepState, TurnId
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = [
    "OpenCall",
    "TurnView",
    "WaitingCommand",
    "audience_at",
    "list_answering",
    "list_commands",
    "list_speaking",
    "list_stopping",
    "said_so_far",
    "show_turn",
]

WaitingCommand: TypeAlias = inbox.InboxItem

COMMANDS_MAX = 50
SPEAKING_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call without a result, and what the person who was asked about it said, if anybody was."""

    call: ToolCallPart
    effect: StepEffect
    state: StepState
    verdict: ApprovalState | None
    answer: str | None = None
    """In words, where the question was one that words answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """Everything an agent is told when its turn begins."""

    session_id: str
    person_id: int
    role: Role
    grants: tuple[Grant, ...]
    """What the owner allowed roles, or took away from them."""
    platform: str
    source: Source
    """Where it is answered; where the session was opened, for a turn that nobody asked for."""
    delegation: Delegation | None
    """By what the session came to be, if another one gave it a task."""
    audience_id: int | None
    """Who else reads the answer; None in a private conversation, where all that the person may see may be said."""
    context: ContextFacts
    messages: tuple[Message | Cover, ...]
    open_calls: tuple[OpenCall, ...]
    model: str | None
    model_settings: ModelSettings | None


def show_turn(
    tx: ReadTx, turn_id: TurnId, *, platforms: frozenset[str] = frozenset(), id_salt: str | None = None
) -> TurnView:
    """Return what a running turn is about; one that nobody asked for runs for the session's owner.

    With ``id_salt`` the agent is told stand-ins for the ids of users.
    """
    turn = turns.get_turn(tx, turn_id)
    session = sessions.get_session(tx, turn.session_id)
    person = people.get_person(tx, session.owner_id if turn.person_id is None else turn.person_id)
    source = session.source if turn.origin is None else turn.origin
    messages = tuple(model_messages(tx, turn.session_id, person_id=session.owner_id))
    context = show_context(
        tx,
        turn.session_id,
        person_id=session.owner_id,
        platforms=platforms,
        said=last_said(messages),
        # Where a schedule was made nobody speaks now.
        source=None if turn.purpose == "schedule" else turn.origin,
    )
    made = {
        part.call_id: part
        for message in messages
        if isinstance(message, Message) and message.role == "assistant"
        for part in message.tool_calls
    }
    open_calls = tuple(
        OpenCall(
            call=made[step.call_id],
            effect=step.effect,
            state=step.state,
            verdict=approvals.find_verdict(tx, turn_id=turn_id, call_id=step.call_id),
            answer=approvals.find_answer(tx, turn_id=turn_id, call_id=step.call_id),
        )
        for step in turns.list_steps(tx, turn_id)
        if step.result_seq is None and step.call_id in made
    )
    return TurnView(
        session_id=turn.session_id,
        person_id=person.id,
        role=person.role,
        grants=tuple(access.list_grants(tx)),
        platform=source.platform,
        source=source,
        delegation=branches.find_delegation(tx, turn.session_id),
        audience_id=None if source.chat_type == "dm" else session.audience_id,
        context=replace(context, id_salt=id_salt),
        messages=messages,
        open_calls=open_calls,
        model=session.model,
        model_settings=None
        if session.model_settings is None
        else decode_model_settings(session.model_settings),
    )


def list_stopping(tx: ReadTx, holder: str) -> list[TurnId]:
    """Return the running turns of a holder that are asked to stop."""
    return turns.list_stopping(tx, holder)


def list_commands(tx: ReadTx) -> list[WaitingCommand]:
    """Return commands that wait for the answer of a surface, oldest first."""
    return inbox.list_commands(tx, limit=COMMANDS_MAX)


def list_speaking(tx: ReadTx) -> list[turns.Turn]:
    """Return running turns that have said something since their last step."""
    return turns.list_speaking(tx, limit=SPEAKING_MAX)


def list_answering(tx: ReadTx) -> list[turns.Turn]:
    """Return running turns that somebody waits for the answer of."""
    return turns.list_answering(tx, limit=SPEAKING_MAX)


def final_parts(tx: ReadTx, outbox_id: int) -> tuple[Part, ...]:
    """Return what a delivery says in the end; nothing while its turn still writes it."""
    delivery = outbox.get_delivery(tx, outbox_id)
    return () if delivery.held_at is not None else delivery.parts


def audience_at(tx: ReadTx, source: Source, session_id: str) -> int | None:
    """Return who reads what is said there; None for a private conversation."""
    return None if source.chat_type == "dm" else sessions.get_session(tx, session_id).audience_id


def said_so_far(tx: ReadTx, turn_id: TurnId, *, start: int = 0) -> str:
    """Return what a turn has said since its last step, from an offset on, as far as the store knows."""
    return "".join(text for _, text in turns.list_chunks(tx, turn_id, start=start))
