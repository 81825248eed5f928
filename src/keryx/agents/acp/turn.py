"""One turn that an ACP program answers: its text since the last step, and the tools it runs.

Each tool that ends becomes a step on the stage, stored together with the text before it.
"""

from dataclasses import field, replace
from typing import Final

from keryx.agents.acp.contract import PromptEnd, TextChunk, ToolReports, ToolUpdate
from keryx.agents.agent import Brief, Stage, StepDone
from keryx.agents.call_ids import call_ids, take_call_id
from keryx.clock import SECOND, Micros
from keryx.core.conversations.rules.message import (
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from keryx.core.turns.rules.program_calls import tool_name
from keryx.core.values.json_value import JsonValue
from keryx.errors import AgentFailed
from keryx.values import dataclass

LOST_RETRY: Final[Micros] = SECOND
NO_RESULT: Final = "The agent reported no result."
FINISH_REASONS: Final = {"end_turn": "stop", "max_tokens": "length"}


@dataclass(slots=True, kw_only=True)
class AcpTurn:
    """The state of a turn; ``mark`` is stored with each of its messages."""

    brief: Brief
    stage: Stage
    reports: ToolReports
    mark: ThinkingPart
    used: dict[str, ToolUpdate]
    """The tools that run now. They belong to the caller, because they may outlast the turn."""
    later: list[NewMessage] = field(default_factory=list)
    """The messages that arrived meanwhile; the program gets them when it has finished its prompt."""
    _thought: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)
    _call_ids: set[str] = field(default_factory=set)
    _has_acted: bool = False

    def __post_init__(self) -> None:
        self._call_ids = call_ids(self.brief.messages)

    async def show(self, event: TextChunk) -> None:
        """Show a piece of the answer or of the thinking."""
        if event.is_thought:
            self._thought.append(event.text)
            await self.stage.think(event.text)
        else:
            # Programs separate the text before and after a tool by empty lines, which must not begin a message.
            text = event.text if self._said else event.text.lstrip("\n")
            self._said.append(text)
            await self.stage.say(text)

    async def separate(self) -> None:
        """Separate the text so far from the next text, if there is any."""
        if self._said:
            await self.show(TextChunk(text="\n\n"))

    async def use(self, event: ToolUpdate) -> None:
        """Show that a tool runs, and store it when it has ended."""
        known = self.used.get(event.call_id)
        used = self.used[event.call_id] = event if known is None else _merged(known, event)
        if known is None:
            await self.stage.show_call(f"{tool_name(used.kind or 'other')}: {used.title or 'something'}")
        if used.is_done:
            del self.used[event.call_id]
            await self._store(used)

    async def store_unfinished(self) -> None:
        """Store the tools whose end was not reported; the text so far belongs to the answer."""
        thought, said = self._thought, self._said
        while self.used:
            self._thought, self._said = [], []
            used = self.used.pop(next(iter(self.used)))
            await self._store(replace(used, output=NO_RESULT, has_failed=True))
        self._thought, self._said = thought, said

    async def _store(self, used: ToolUpdate) -> None:
        self.reports[self.brief.session_id] = used
        call = ToolCallPart(
            call_id=self.fresh_id(used.call_id),
            name=tool_name(used.kind or "other"),
            arguments=arguments_of(used.title, used.given),
        )
        await self.step(call)

    async def step(self, call: ToolCallPart) -> StepDone:
        """Record a call on the stage, with the text before it."""
        step = NewMessage(role="assistant", parts=(*self._parts(), call), finish_reason="tool_calls")
        self._thought, self._said, self._has_acted = [], [], True
        done = await self.stage.act(step)
        self.later += done.joined
        return done

    def fresh_id(self, wanted: str) -> str:
        """Return an id that no call of the conversation has yet."""
        return take_call_id(wanted, self._call_ids)

    def answer(self, end: PromptEnd) -> NewMessage:
        """Return the final message of the turn, or raise ``AgentFailed``."""
        if end.has_failed:
            # Another attempt would repeat the tools that ran.
            again = end.is_lost and not self._has_acted
            raise AgentFailed(end.reason, retry_after=LOST_RETRY if again else None)
        parts = self._parts()
        if not any(isinstance(part, TextPart) for part in parts):
            said = "refused to answer this" if end.reason == "refusal" else "gave an empty answer"
            raise AgentFailed(f"the agent {said}.")
        return NewMessage(
            role="assistant",
            parts=parts,
            finish_reason=FINISH_REASONS.get(end.reason, end.reason),
            input_tokens=end.input_tokens,
            cached_tokens=end.cached_tokens,
            output_tokens=end.output_tokens,
        )

    def _parts(self) -> tuple[Part, ...]:
        thought, text = "".join(self._thought), "".join(self._said).strip("\n")
        thinking = (ThinkingPart(text=thought),) if thought else ()
        return (*thinking, self.mark, TextPart(text=text)) if text.strip() else (*thinking, self.mark)


def arguments_of(title: str | None, given: JsonValue) -> dict[str, JsonValue]:
    """Return the stored arguments of a program's tool: its title, and its input."""
    arguments: dict[str, JsonValue] = {"title": title or "something"}
    if given is not None:
        arguments["input"] = given
    return arguments


def _merged(known: ToolUpdate, news: ToolUpdate) -> ToolUpdate:
    return replace(
        news,
        title=news.title or known.title,
        kind=news.kind or known.kind,
        given=known.given if news.given is None else news.given,
        output=known.output if news.output is None else news.output,
    )
