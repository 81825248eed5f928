"""What a turn works on: its person and chat, the transcript, and the open calls; and what a turn ran with."""

from collections.abc import Mapping
from dataclasses import replace

from keryx.core.approvals import tables as approvals
from keryx.core.approvals.rules.approval import ApprovalState
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.guide_turns import has_explained, without_guide
from keryx.core.context.rules.prompt import ContextFacts
from keryx.core.context.rules.turn_time import time_line
from keryx.core.context.views.prompt_facts import last_said, show_context
from keryx.core.conversations.rules.message import Message, ToolCallPart
from keryx.core.conversations.rules.part import Part
from keryx.core.conversations.rules.session_settings import ModelSettings, decode_model_settings
from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import branches, sessions
from keryx.core.conversations.views.transcript import covered_messages
from keryx.core.deliveries.tables import outbox
from keryx.core.media.views import read_contents
from keryx.core.people.rules.access import Grant
from keryx.core.people.tables import access, people
from keryx.core.turns.rules.delegation import Delegation
from keryx.core.turns.tables import turns
from keryx.core.turns.tables.inbox import InboxItem as WaitingCommand
from keryx.core.turns.tables.inbox import list_commands
from keryx.core.turns.tables.turns import list_answering, list_speaking, list_stopping, text_so_far
from keryx.core.turns.views.turn_times import time_lines
from keryx.core.values.role import Role
from keryx.core.values.turn_states import StepEffect, StepState, TurnId
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = [
    "OpenCall",
    "TurnPrompt",
    "TurnView",
    "WaitingCommand",
    "audience_at",
    "final_parts",
    "list_answering",
    "list_commands",
    "list_speaking",
    "list_stopping",
    "show_prompt",
    "show_turn",
    "text_so_far",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call without a result, and a person's decision about it."""

    call: ToolCallPart
    effect: StepEffect
    state: StepState
    verdict: ApprovalState | None
    answer: str | None = None
    """The text of the answer, if the question asked for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """What an agent gets at the start of its turn."""

    session_id: str
    person_id: int
    role: Role
    grants: tuple[Grant, ...]
    """The owner's grants and bans for roles."""
    platform: str
    source: Source
    """The chat of the answer; without a message, the chat where the session was opened."""
    delegation: Delegation | None
    """The delegation, if the session works on a delegated task."""
    audience_id: int | None
    """Who reads the answer; None in a private chat, where everything that the person may see may appear."""
    context: ContextFacts
    messages: tuple[Message | Cover, ...]
    time_lines: Mapping[TurnId, str]
    """What models are told about when each turn of the conversation began."""
    guide_explained: bool
    """Whether the built-in guide has said here how to set a model up."""
    open_calls: tuple[OpenCall, ...]
    model: str | None
    model_settings: ModelSettings | None


def show_turn(
    tx: ReadTx, turn_id: TurnId, *, platforms: frozenset[str] = frozenset(), id_salt: str | None = None
) -> TurnView:
    """Return what a running turn works on; without a person, it runs for the session's owner.

    With ``id_salt`` the agent gets pseudonyms instead of user ids.
    """
    turn = turns.get_turn(tx, turn_id)
    session = sessions.get_session(tx, turn.session_id)
    person = people.get_person(tx, session.owner_id if turn.person_id is None else turn.person_id)
    source = session.source if turn.origin is None else turn.origin
    spoken = covered_messages(tx, turn.session_id, person_id=session.owner_id)
    messages = tuple(without_guide(spoken))
    context = show_context(
        tx,
        turn.session_id,
        person_id=session.owner_id,
        platforms=platforms,
        said=last_said(messages),
        # No person takes part in the chat where a schedule was made.
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
        time_lines=time_lines(tx, messages, running=turn),
        guide_explained=has_explained(spoken),
        open_calls=open_calls,
        model=session.model,
        model_settings=None
        if session.model_settings is None
        else decode_model_settings(session.model_settings),
    )


def final_parts(tx: ReadTx, outbox_id: int) -> tuple[Part, ...]:
    """Return the final content of a delivery; nothing while it is a preview row."""
    delivery = outbox.get_delivery(tx, outbox_id)
    return () if delivery.held_at is not None else delivery.parts


def audience_at(tx: ReadTx, source: Source, session_id: str) -> int | None:
    """Return the audience of a session's answers to a source; None for a private chat."""
    return None if source.chat_type == "dm" else sessions.get_session(tx, session_id).audience_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompt:
    """The model, the system prompt and the tools of a turn; the tools as JSON."""

    model: str | None
    prompt: str
    tools: str
    time: str | None = None
    """The line with date and time in the turn's message; None for a turn from before such lines."""


def show_prompt(tx: ReadTx, turn_id: int, *, person_id: int) -> TurnPrompt | None:
    """Return what a turn of a session that the person may see ran with; None without a model request."""
    sessions.get_visible(tx, turns.get_turn(tx, turn_id).session_id, person_id=person_id)
    found = turns.find_prompt(tx, turn_id)
    if found is None:
        return None
    hashes = (found.prompt_hash, found.tools_hash)
    kept = read_contents(tx, hashes)
    prompt, tools = (kept[digest].decode("utf-8", "surrogatepass") for digest in hashes)
    time = None if found.zone is None else time_line(found.begun_at, found.zone)
    return TurnPrompt(model=found.model, prompt=prompt, tools=tools, time=time)
