"""Where one turn's agent speaks and acts: every step is in the store before it takes effect.

The calls of a message are stored together before any of them starts; one that may have an effect is started only
after its start is stored; every call gets one result. A call that a person must allow lets the turn wait, and nothing
of it stays in memory.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from keryx.agents.agent import Brief, ModelUse, StepDone
from keryx.core.approvals.rules.approval import ASK_USER, ApprovalQuestion
from keryx.core.approvals.rules.approval_rule import CallToApprove, coverage
from keryx.core.approvals.transactions.manage_approval_rules import allow_by_rules
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.context.rules.gauge import Gauge
from keryx.core.context.transactions.cover_messages import CoverRefused, cover_held
from keryx.core.context.views.pins import pinned_seqs
from keryx.core.conversations.rules.message import Message, NewMessage, ToolCallPart, ToolResultPart, text_of
from keryx.core.media.rules import long_result
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import must_record_start
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.record_step import (
    NotStarted,
    ask_approval,
    record_calls,
    record_gauge,
    record_pause,
    record_prompt,
    record_result,
    start_call,
)
from keryx.core.turns.transactions.renew_turn import renew_turn
from keryx.core.turns.views.turn import OpenCall, TurnView, show_turn
from keryx.core.values.json_value import JsonValue, leaves
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.gateway.runtime.log import log_of
from keryx.gateway.runtime.runtime import Runtime
from keryx.gateway.turns.text_so_far import TextSoFar
from keryx.store.database import Tx
from keryx.tools.tool import Tool, Toolbox, ToolCall

NOT_ALLOWED = "This was not done: the person who was asked did not allow it."
NOT_ANSWERED = "This was not done: the person who was asked did not answer in time."

_log = log_of("turns")


class TurnWaits(Exception):
    """The turn waits for a person and has let go of its session; whoever runs it has nothing more to do."""


class TurnStopped(Exception):
    """A person wants the turn to stop; with ``roll_back`` so that it begins again with a new message."""

    def __init__(self, *, roll_back: bool) -> None:
        super().__init__("stopped")
        self.roll_back = roll_back


class TurnStage:
    """The stage of one turn."""

    def __init__(self, runtime: Runtime, toolbox: Toolbox, view: TurnView, begun: BegunTurn) -> None:
        self._runtime = runtime
        self._toolbox = toolbox
        self._view = view
        self._held = begun.held
        self.seen: tuple[int, ...] = ()
        """Messages that joined the turn; they count as answered by the next step or answer that commits."""
        self._saying = TextSoFar(runtime, begun.held, after=_last_seq(view.messages))
        self._asked: ModelUse | None = None
        self._gauge: Gauge | None = None
        self._is_paused = False

    @property
    def asked_model(self) -> bool:
        """Whether a model was asked in this turn."""
        return self._asked is not None

    @property
    def partial(self) -> NewMessage | None:
        """What was said since the last step, for a turn that ends before its answer."""
        return self._saying.so_far(self._gauge)

    async def say(self, text: str) -> None:
        """Show a piece of the answer; about once a second what there is of it is stored."""
        await self._go_on()
        await self._saying.add("text", text)

    async def think(self, text: str) -> None:
        """Show a piece of what is thought."""
        await self._go_on()
        await self._saying.add("thinking", text)

    async def pause(self, reason: str) -> None:
        """Store why nothing comes for now."""
        await self._note_pause(reason)

    async def show_call(self, text: str) -> None:
        """Show what the agent does itself."""
        await self._go_on()
        await self._saying.add("call", text)

    async def note_model(self, use: ModelUse) -> None:
        """Store which model was asked and with what, unless that is stored."""
        self._gauge = use.gauge or self._gauge
        if _is_noted(use, self._asked):
            return

        def note(tx: Tx, held: TurnLease) -> None:
            record_prompt(tx, held, model=use.model, prompt=use.prompt, tools=use.tools)
            if use.gauge is not None:
                record_gauge(tx, held, gauge=use.gauge)

        await self._runtime.record(self._held, note)
        self._asked = use

    async def act(self, step: NewMessage) -> StepDone:
        """Store the calls, carry them out, and return their results in the order of the calls."""
        await self._go_on()
        step = self._with_effects(step)
        recorded = await self._runtime.record(
            self._held, record_calls, message=step, seen=self.seen, ids=self._runtime.ids
        )
        self.seen = ()
        self._saying.clear(after=recorded.seq)
        calls = [part for part in step.parts if isinstance(part, ToolCallPart)]
        done = await self._carry_out(
            [
                OpenCall(call=call, effect=call.effect or "once", state="called", verdict=None)
                for call in calls
            ]
        )
        return StepDone(results=tuple(done[call.call_id] for call in calls), joined=await self._listen())

    async def reread(self) -> Sequence[Message | Cover]:
        """Return what a model reads of the conversation now."""
        turn_id = self._held.turn_id
        return (await self._runtime.database.read(lambda tx: show_turn(tx, turn_id))).messages

    async def pinned(self) -> frozenset[int]:
        """Return the numbers of the messages that are pinned now."""
        session_id = self._view.session_id
        return await self._runtime.database.read(lambda tx: pinned_seqs(tx, session_id))

    async def cover(self, summary: Summary) -> bool:
        """Store a summary, whole, and say whether it stands."""
        person_id = self._view.person_id
        outcome = await self._runtime.record(self._held, cover_held, summary, person_id=person_id)
        if isinstance(outcome, CoverRefused):
            _log.warning("a summary was refused: %s", outcome.reason)
            return False
        _log.info(
            "a summary stands for messages %d to %d: %d tokens instead of %d",
            *(summary.first_seq, summary.last_seq, summary.tokens_after, summary.tokens_before),
        )
        return True

    async def finish_open_calls(self) -> bool:
        """Carry out what the turn, or a lost one before it, left open; say whether there was anything."""
        if self._view.open_calls:
            await self._carry_out(self._view.open_calls)
        return bool(self._view.open_calls)

    async def _listen(self) -> tuple[NewMessage, ...]:
        """Return what people said for this turn meanwhile; a stop ends it here."""
        renewed = await self._runtime.record(self._held, renew_turn)
        if renewed.stop_requested:
            raise TurnStopped(roll_back=renewed.roll_back)
        self.seen = tuple(each.id for each in renewed.steering)
        return tuple(each.message for each in renewed.steering)

    async def _carry_out(self, calls: Sequence[OpenCall]) -> dict[str, ToolResultPart]:
        """Run all calls that may run at once; then ask about the first that needs a person's word, which waits."""
        results: dict[str, ToolResultPart] = {}
        wishes: dict[str, CallToApprove] = {}
        for each in filter(self._needs_word, calls):
            wish = self._wish(each)
            if isinstance(wish, CallToApprove):
                wishes[wish.call_id] = wish
            else:
                results[each.call.call_id] = await self._record(each.call, wish, is_error=True)
        allowed = await self._allowed(tuple(wishes.values()))
        runnable = [
            replace(each, verdict="approved") if each.call.call_id in allowed else each
            for each in calls
            if each.call.call_id not in results
            and (each.call.call_id in allowed or each.call.call_id not in wishes)
        ]
        for each, result in zip(runnable, await asyncio.gather(*map(self._call, runnable)), strict=True):
            results[each.call.call_id] = result
        for wish in wishes.values():
            if wish.call_id not in allowed:
                await self._ask(wish)
        return results

    def _needs_word(self, each: OpenCall) -> bool:
        """Say whether a person must allow the call first; one that cannot be run is asked about no more."""
        return (
            each.effect == "ask"
            and each.verdict in (None, "pending")
            and self._toolbox.find(each.call.name) is not None
            and isinstance(each.call.arguments, dict)
        )

    def _wish(self, each: OpenCall) -> CallToApprove | str:
        """Return what a person is asked about a call, or the reason why it cannot be."""
        call = each.call
        tool = self._toolbox.find(call.name)
        assert tool is not None, "only known tools have the effect 'ask'"
        use = self._use(each, key=call.call_id)
        try:
            texts = [text for value in use.arguments.values() for text in leaves(value)]
            covers = coverage(tool.pattern(use), texts)
            return CallToApprove(
                call_id=call.call_id, tool=call.name, question=tool.question(use), covers=covers
            )
        except Exception as error:  # noqa: BLE001 - a tool is somebody else's code, and its call needs a result
            return _failure(tool, error)

    async def _allowed(self, wishes: tuple[CallToApprove, ...]) -> frozenset[str]:
        """Return the calls that the person lastingly allows; it is stored by which word of theirs."""
        if not wishes:
            return frozenset()
        return await self._runtime.record(self._held, allow_by_rules, wishes=wishes)

    async def _call(self, each: OpenCall) -> ToolResultPart:
        call = each.call
        tool = self._toolbox.find(call.name)
        if tool is None:
            return await self._record(call, self._toolbox.unknown(call.name), is_error=True)
        if not isinstance(call.arguments, dict):
            return await self._record(
                call, "The arguments are not a JSON object; call it again.", is_error=True
            )
        if each.effect == "ask" and each.verdict != "approved":
            reason = NOT_ANSWERED if each.verdict == "expired" else NOT_ALLOWED
            return await self._record(call, reason, is_error=True)
        key = call.call_id
        if must_record_start(each.effect):
            started = await self._runtime.record(self._held, start_call, call_id=call.call_id)
            if isinstance(started, NotStarted):
                return await self._record(call, "It is unknown whether this ran.", is_error=True)
            key = started.idempotency_key
        return await self._run(tool, each, key=key)

    async def _run(self, tool: Tool, each: OpenCall, *, key: str) -> ToolResultPart:
        call = each.call
        try:
            output = await tool.run(self._use(each, key=key))
        except Exception as error:  # noqa: BLE001 - a tool is somebody else's code, and its call needs a result
            return await self._record(call, _failure(tool, error), is_error=True)
        return await self._record(call, output, is_error=False)

    async def _ask(self, wish: CallToApprove) -> None:
        """Put the question to the person and let the turn wait."""
        zone = self._runtime.settings.reset.default.zone
        # What the agent asks in its own words is answered in the person's, and never lastingly.
        question = (
            wish.question
            if wish.tool == ASK_USER
            else ApprovalQuestion(text=wish.question, tool=wish.tool, covers=wish.covers, zone=zone)
        )
        await self._runtime.record(
            self._held, ask_approval, call_id=wish.call_id, question=question, ids=self._runtime.ids
        )
        raise TurnWaits

    async def _record(self, call: ToolCallPart, output: JsonValue, *, is_error: bool) -> ToolResultPart:
        whole = long_result(output)
        shown = output if whole is None else whole.shown
        result = ToolResultPart(call_id=call.call_id, name=call.name, output=shown, is_error=is_error)
        message = NewMessage(role="tool", parts=(result,))
        await self._runtime.record(self._held, record_result, result=message, whole=whole)
        return result

    def _use(self, each: OpenCall, *, key: str) -> ToolCall:
        arguments = each.call.arguments if isinstance(each.call.arguments, dict) else {}
        return ToolCall(
            arguments=arguments,
            session_id=self._view.session_id,
            person_id=self._view.person_id,
            audience_id=self._view.audience_id,
            key=key,
            workspace=self._view.context.workspace,
            source=self._view.source,
            tools=[offer.name for offer in self._toolbox.offers()],
            answer=each.answer,
            turn_id=self._held.turn_id,
        )

    def _with_effects(self, step: NewMessage) -> NewMessage:
        """Return the message with each call's effect as its tool declares it; an unknown tool does nothing."""
        parts = (
            replace(part, effect=self._effect(part)) if isinstance(part, ToolCallPart) else part
            for part in step.parts
        )
        return replace(step, parts=tuple(parts))

    def _effect(self, call: ToolCallPart) -> StepEffect:
        tool = self._toolbox.find(call.name)
        return "pure" if tool is None else tool.offer.effect_of(call.arguments)

    async def _go_on(self) -> None:
        if self._is_paused:
            await self._note_pause(None)

    async def _note_pause(self, reason: str | None) -> None:
        await self._runtime.record(self._held, record_pause, reason=reason)
        self._is_paused = reason is not None


def _last_seq(messages: Sequence[Message | Cover]) -> int:
    last = messages[-1] if messages else None
    return 0 if last is None else last.seq if isinstance(last, Message) else last.last_seq


def _failure(tool: Tool, error: Exception) -> str:
    """Return what the agent is told of a tool that could not do it."""
    if isinstance(error, ToolFailed):
        return str(error)
    _log.failed("the tool %s failed", tool.offer.name, error=error)
    return "The tool failed; the log says why."


def _is_noted(use: ModelUse, noted: ModelUse | None) -> bool:
    """Say whether what is stored of the last question still says it: the gauge to a hundredth of the window."""
    if noted is None or replace(use, gauge=None) != replace(noted, gauge=None):
        return False
    if use.gauge is None or noted.gauge is None:
        return use.gauge is None
    moved = abs(use.gauge.total - noted.gauge.total)
    return use.gauge.window == noted.gauge.window and moved < use.gauge.window // 100


def make_brief(view: TurnView, toolbox: Toolbox, begun: BegunTurn) -> Brief:
    """Return what the agent is given for a turn."""
    return Brief(
        turn_id=begun.turn_id,
        session_id=view.session_id,
        purpose=begun.purpose,
        context=view.context,
        messages=view.messages,
        tools=toolbox.offers(),
        role=view.role,
        model=view.model,
        model_settings=view.model_settings,
        has_failed=begun.has_failed,
        focus=text_of(begun.answers[-1].parts) or None if begun.purpose == "compress" else None,
    )
