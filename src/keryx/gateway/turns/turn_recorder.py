"""Record what the agent of one turn says and does, and run its tool calls. A step is stored before it takes effect.

The calls of a message are stored together before any of them starts. A call that may have an effect starts only after
its start is stored. Every call gets one result. While a call waits for a person's approval, nothing stays in memory.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from keryx.agents.agent import Brief, ModelUse, StepDone
from keryx.core.approvals.rules.approval import ASK_USER, ApprovalQuestion
from keryx.core.approvals.rules.approval_rule import CallToApprove, coverage
from keryx.core.approvals.transactions.manage_approval_rules import allow_by_rules
from keryx.core.context.rules.context_usage import ContextUsage
from keryx.core.context.rules.cover import Cover, Summary
from keryx.core.context.transactions.cover_messages import CoverRefused, cover_held
from keryx.core.context.views.prompt_facts import pinned_seqs
from keryx.core.conversations.rules.message import Message, NewMessage, ToolCallPart, ToolResultPart, text_of
from keryx.core.media.rules import long_result
from keryx.core.turns.rules.lease import TurnLease
from keryx.core.turns.rules.turn import must_record_start
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.core.turns.transactions.record_step import (
    NotStarted,
    ask_approval,
    record_calls,
    record_context_usage,
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
    """The turn waits for a person and has released its lease; the turn loop has nothing more to do."""


class TurnStopped(Exception):
    """A person stopped the turn; with ``roll_back``, to begin it again with a new message."""

    def __init__(self, *, roll_back: bool) -> None:
        super().__init__("stopped")
        self.roll_back = roll_back


class TurnRecorder:
    """The ``Stage`` of one turn."""

    def __init__(self, runtime: Runtime, toolbox: Toolbox, view: TurnView, begun: BegunTurn) -> None:
        self._runtime = runtime
        self._toolbox = toolbox
        self._view = view
        self._held = begun.held
        self.seen: tuple[int, ...] = ()
        """The messages that joined the turn; the next step or answer that commits counts them as answered."""
        self._text = TextSoFar(runtime, begun.held, after=_last_seq(view.messages))
        self.last_use: ModelUse | None = None
        """The stored description of the last request to a model in this turn."""
        self._in_context: ContextUsage | None = None
        self._is_paused = False

    @property
    def partial(self) -> NewMessage | None:
        """The text since the last step, for a turn that ends before its answer."""
        return self._text.so_far(self._in_context)

    async def say(self, text: str) -> None:
        """Show a piece of the answer; the text so far is stored about once a second."""
        await self.pause(None)
        await self._text.add("text", text)

    async def think(self, text: str) -> None:
        """Show a piece of the thinking."""
        await self.pause(None)
        await self._text.add("thinking", text)

    async def pause(self, reason: str | None) -> None:
        """Store the reason why no text comes for now; None ends the pause."""
        if reason is not None or self._is_paused:
            await self._runtime.record(self._held, record_pause, reason=reason)
            self._is_paused = reason is not None

    async def show_call(self, text: str) -> None:
        """Show a line for a tool that the agent runs itself."""
        await self.pause(None)
        await self._text.add("call", text)

    async def note_model(self, use: ModelUse) -> None:
        """Store the model, prompt and tools of a request, unless they are stored already."""
        self._in_context = use.context_usage or self._in_context
        if _is_recorded(use, self.last_use):
            return

        def note(tx: Tx, held: TurnLease) -> None:
            record_prompt(tx, held, model=use.model, prompt=use.prompt, tools=use.tools)
            if use.context_usage is not None:
                record_context_usage(tx, held, usage=use.context_usage)

        await self._runtime.record(self._held, note)
        self.last_use = use

    async def act(self, step: NewMessage) -> StepDone:
        """Store the calls, run them, and return their results in the order of the calls."""
        await self.pause(None)
        parts = tuple(
            replace(part, effect=self._effect(part)) if isinstance(part, ToolCallPart) else part
            for part in step.parts
        )
        step = replace(step, parts=parts)
        recorded = await self._runtime.record(
            self._held, record_calls, message=step, seen=self.seen, ids=self._runtime.ids
        )
        self.seen = ()
        self._text.clear(after=recorded.seq)
        calls = [part for part in step.parts if isinstance(part, ToolCallPart)]
        results = await self._run_calls(
            [
                OpenCall(call=call, effect=call.effect or "once", state="called", verdict=None)
                for call in calls
            ]
        )
        return StepDone(
            results=tuple(results[call.call_id] for call in calls), joined=await self._check_stop()
        )

    async def reread(self) -> Sequence[Message | Cover]:
        """Return the conversation as a model reads it now."""
        turn_id = self._held.turn_id
        return (await self._runtime.database.read(lambda tx: show_turn(tx, turn_id))).messages

    async def pinned(self) -> frozenset[int]:
        """Return the numbers of the pinned messages."""
        session_id = self._view.session_id
        return await self._runtime.database.read(lambda tx: pinned_seqs(tx, session_id))

    async def cover(self, summary: Summary) -> bool:
        """Store a summary; return False if the store refuses it."""
        person_id = self._view.person_id
        outcome = await self._runtime.record(self._held, cover_held, summary, person_id=person_id)
        if isinstance(outcome, CoverRefused):
            _log.warning("a summary was refused: %s", outcome.reason)
            return False
        _log.info(
            "summarised messages %d to %d: %d tokens instead of %d",
            *(summary.first_seq, summary.last_seq, summary.tokens_after, summary.tokens_before),
        )
        return True

    async def finish_open_calls(self) -> bool:
        """Run the calls that this turn, or a lost one before it, left open; return whether there were any."""
        if self._view.open_calls:
            await self._run_calls(self._view.open_calls)
        return bool(self._view.open_calls)

    async def _check_stop(self) -> tuple[NewMessage, ...]:
        """Raise ``TurnStopped`` if a person stopped the turn, else return the messages that joined it meanwhile."""
        renewed = await self._runtime.record(self._held, renew_turn)
        if renewed.stop_requested:
            raise TurnStopped(roll_back=renewed.roll_back)
        self.seen = tuple(each.id for each in renewed.steering)
        return tuple(each.message for each in renewed.steering)

    async def _run_calls(self, calls: Sequence[OpenCall]) -> dict[str, ToolResultPart]:
        """Run all calls that need no approval; then ask about the first of the others, and let the turn wait."""
        results: dict[str, ToolResultPart] = {}
        to_approve: dict[str, CallToApprove] = {}
        for each in filter(self._needs_approval, calls):
            request = self._approval_request(each)
            if isinstance(request, CallToApprove):
                to_approve[request.call_id] = request
            else:
                results[each.call.call_id] = await self._record(each.call, request, is_error=True)
        allowed: frozenset[str] = frozenset()
        if to_approve:
            allowed = await self._runtime.record(self._held, allow_by_rules, calls=tuple(to_approve.values()))
        runnable = [
            replace(each, verdict="approved") if each.call.call_id in allowed else each
            for each in calls
            if each.call.call_id not in results
            and (each.call.call_id in allowed or each.call.call_id not in to_approve)
        ]
        for each, result in zip(runnable, await asyncio.gather(*map(self._run_call, runnable)), strict=True):
            results[each.call.call_id] = result
        for request in to_approve.values():
            if request.call_id not in allowed:
                await self._ask(request)
        return results

    def _needs_approval(self, each: OpenCall) -> bool:
        """Return whether a person must approve the call first. A call that cannot run needs no approval."""
        return (
            each.effect == "ask"
            and each.verdict in (None, "pending")
            and self._toolbox.find(each.call.name) is not None
            and isinstance(each.call.arguments, dict)
        )

    def _approval_request(self, each: OpenCall) -> CallToApprove | str:
        """Return the request for a person's approval of a call, or an error text for the agent."""
        call = each.call
        tool = self._toolbox.find(call.name)
        assert tool is not None, "only known tools have the effect 'ask'"
        tool_call = self._tool_call(each, key=call.call_id)
        try:
            texts = [text for value in tool_call.arguments.values() for text in leaves(value)]
            covers = coverage(tool.pattern(tool_call), texts)
            return CallToApprove(
                call_id=call.call_id, tool=call.name, question=tool.question(tool_call), covers=covers
            )
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, its call needs a result
            return _error_text(tool, error)

    async def _run_call(self, each: OpenCall) -> ToolResultPart:
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
        try:
            output = await tool.run(self._tool_call(each, key=key))
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, its call needs a result
            return await self._record(call, _error_text(tool, error), is_error=True)
        return await self._record(call, output, is_error=False)

    async def _ask(self, request: CallToApprove) -> None:
        """Ask the person, and let the turn wait."""
        zone = self._runtime.settings.reset.default.zone
        # A question in the agent's own words gets an answer in the person's words, and no standing approval.
        question = (
            request.question
            if request.tool == ASK_USER
            else ApprovalQuestion(text=request.question, tool=request.tool, covers=request.covers, zone=zone)
        )
        await self._runtime.record(
            self._held, ask_approval, call_id=request.call_id, question=question, ids=self._runtime.ids
        )
        raise TurnWaits

    async def _record(self, call: ToolCallPart, output: JsonValue, *, is_error: bool) -> ToolResultPart:
        whole = long_result(output)
        shown = output if whole is None else whole.shown
        result = ToolResultPart(call_id=call.call_id, name=call.name, output=shown, is_error=is_error)
        message = NewMessage(role="tool", parts=(result,))
        await self._runtime.record(self._held, record_result, result=message, whole=whole)
        return result

    def _tool_call(self, each: OpenCall, *, key: str) -> ToolCall:
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

    def _effect(self, call: ToolCallPart) -> StepEffect:
        tool = self._toolbox.find(call.name)
        return "pure" if tool is None else tool.offer.effect_of(call.arguments)


def _last_seq(messages: Sequence[Message | Cover]) -> int:
    last = messages[-1] if messages else None
    return 0 if last is None else last.seq if isinstance(last, Message) else last.last_seq


def _error_text(tool: Tool, error: Exception) -> str:
    """Return the error text that the agent gets for a failed tool."""
    if isinstance(error, ToolFailed):
        return str(error)
    _log.failed("the tool %s failed", tool.offer.name, error=error)
    return "The tool failed; the log says why."


def _is_recorded(use: ModelUse, recorded: ModelUse | None) -> bool:
    """Return whether the stored use still describes this one, with the context usage to a hundredth of the window."""
    if recorded is None or replace(use, context_usage=None) != replace(recorded, context_usage=None):
        return False
    if use.context_usage is None or recorded.context_usage is None:
        return use.context_usage is None
    moved = abs(use.context_usage.total - recorded.context_usage.total)
    return (
        use.context_usage.window == recorded.context_usage.window and moved < use.context_usage.window // 100
    )


def make_brief(view: TurnView, toolbox: Toolbox, begun: BegunTurn) -> Brief:
    """Return the agent's brief for a turn."""
    return Brief(
        turn_id=begun.turn_id,
        session_id=view.session_id,
        purpose=begun.purpose,
        context=view.context,
        messages=view.messages,
        time_lines=view.time_lines,
        guide_explained=view.guide_explained,
        tools=toolbox.offers(),
        role=view.role,
        model=view.model,
        model_settings=view.model_settings,
        has_failed=begun.has_failed,
        focus=text_of(begun.answers[-1].parts) or None if begun.purpose == "compress" else None,
    )
