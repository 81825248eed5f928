"""One turn that an ACP program answers: what it said since the last step, what it uses, and what becomes of that.

Each tool it is done with is a step on the stage, kept together with what was said before it.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from keryx.agents.acp_words import Over, Report, Reports, Spoke, Used, tool_name
from keryx.agents.agent import AgentFailed, Brief, Said, Stage, StepDone
from keryx.clock import SECOND, Micros
from keryx.domain.json_value import JsonValue
from keryx.domain.message import Message, NewMessage, Part, TextPart, ThinkingPart, ToolCallPart
from keryx.values import dataclass

LOST_RETRY: Final[Micros] = SECOND
NO_RESULT: Final = "The agent told of no result."
FINISH_REASONS: Final = {"end_turn": "stop", "max_tokens": "length"}


@dataclass(slots=True, kw_only=True)
class AcpTurn:
    """What happens in a turn; ``mark`` goes with everything that is kept of it."""

    brief: Brief
    stage: Stage
    reports: Reports
    mark: ThinkingPart
    used: dict[str, Used]
    """Tools that are in use; kept by whoever made the turn, because they may outlast it."""
    later: list[NewMessage] = field(default_factory=list)
    """What people said meanwhile; the program is told when it is done with what it does."""
    _thought: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)
    _call_ids: set[str] = field(default_factory=set)
    _has_acted: bool = False

    def __post_init__(self) -> None:
        self._call_ids = _call_ids(self.brief.messages)

    async def show(self, event: Spoke) -> None:
        """Show what the program says or thinks."""
        if event.is_thought:
            self._thought.append(event.text)
            await self.stage.think(event.text)
        else:
            # Programs part what they say before and after a tool by empty lines, which begin no message of ours.
            text = event.text if self._said else event.text.lstrip("\n")
            self._said.append(text)
            await self.stage.say(text)

    async def part(self) -> None:
        """Part what was said from what comes, if anything was."""
        if self._said:
            await self.show(Spoke(text="\n\n"))

    async def use(self, event: Used) -> None:
        """Show that a tool is used, and keep it when it is done."""
        known = self.used.get(event.call_id)
        used = self.used[event.call_id] = event if known is None else _merged(known, event)
        if known is None:
            await self.stage.show_call(f"{tool_name(used.kind or 'other')}: {used.title or 'something'}")
        if used.is_done:
            del self.used[event.call_id]
            await self._keep(used, Report(output=used.output, has_failed=used.has_failed))

    async def keep_unfinished(self) -> None:
        """Keep the tools that were begun and of whose end nothing was told; what was said is the answer's."""
        thought, said = self._thought, self._said
        while self.used:
            self._thought, self._said = [], []
            used = self.used.pop(next(iter(self.used)))
            await self._keep(used, Report(output=NO_RESULT, has_failed=True))
        self._thought, self._said = thought, said

    async def _keep(self, used: Used, report: Report) -> None:
        self.reports.give(self.brief.session_id, report)
        call = ToolCallPart(
            call_id=self.fresh_id(used.call_id),
            name=tool_name(used.kind or "other"),
            arguments=arguments_of(used.title, used.given),
        )
        await self.step(call)

    async def step(self, call: ToolCallPart) -> StepDone:
        """Carry out a call on the stage, with what was said before it."""
        step = NewMessage(role="assistant", parts=(*self._parts(), call), finish_reason="tool_calls")
        self._thought, self._said, self._has_acted = [], [], True
        done = await self.stage.act(step)
        self.later += done.joined
        return done

    def fresh_id(self, wanted: str) -> str:
        """Return an id no call of this conversation has yet."""
        number, call_id = 1, wanted
        while call_id in self._call_ids:
            number += 1
            call_id = f"{wanted}-{number}"
        self._call_ids.add(call_id)
        return call_id

    def answer(self, over: Over) -> NewMessage:
        """Return what the turn ends with, or raise ``AgentFailed``."""
        if over.has_failed:
            # What it has done, it would do again.
            again = over.is_lost and not self._has_acted
            raise AgentFailed(over.reason, retry_after=LOST_RETRY if again else None)
        parts = self._parts()
        if not any(isinstance(part, TextPart) for part in parts):
            said = "refused to answer this" if over.reason == "refusal" else "gave an empty answer"
            raise AgentFailed(f"the agent {said}.")
        return NewMessage(
            role="assistant",
            parts=parts,
            finish_reason=FINISH_REASONS.get(over.reason, over.reason),
            input_tokens=over.input_tokens,
            cached_tokens=over.cached_tokens,
            output_tokens=over.output_tokens,
        )

    def _parts(self) -> tuple[Part, ...]:
        thought, text = "".join(self._thought), "".join(self._said).strip("\n")
        thinking = (ThinkingPart(text=thought),) if thought else ()
        return (*thinking, self.mark, TextPart(text=text)) if text.strip() else (*thinking, self.mark)


def arguments_of(title: str | None, given: JsonValue) -> dict[str, JsonValue]:
    """Return what is kept of what a program does: its own words for it, and what it was given."""
    told: dict[str, JsonValue] = {"title": title or "something"}
    if given is not None:
        told["input"] = given
    return told


def _merged(known: Used, news: Used) -> Used:
    return Used(
        call_id=known.call_id,
        title=news.title or known.title,
        kind=news.kind or known.kind,
        given=known.given if news.given is None else news.given,
        output=known.output if news.output is None else news.output,
        has_failed=news.has_failed,
        is_done=news.is_done,
    )


def _call_ids(messages: Sequence[Said]) -> set[str]:
    return {call.call_id for each in messages if isinstance(each, Message) for call in each.tool_calls}
