"""Our messages as a provider's package sends them. Pure.

The order is: the instructions, the conversation, and last the context block, which changes from turn to turn. So the
text that was sent before stays the beginning of the text that is sent next, and a provider can cache it. Each call is
followed by its one result, in whatever order they are stored. ``strict_form`` has the form for other servers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from pydantic_ai import messages as wire

from keryx.agents.agent import HistoryItem
from keryx.agents.model.providers.request_parts import (
    NO_TIME,
    UNREADABLE,
    attachment_name,
    call_arguments,
    clean_text,
    keryx_part,
    result_part,
    shown_content,
    stray_result_part,
)
from keryx.agents.model.providers.server_limits import Limit
from keryx.agents.model.providers.signatures import part_fields, unpack_signature
from keryx.agents.model.providers.strict_form import strict_messages
from keryx.core.context.rules.call_pairs import CallPair, pair_calls
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.prompt import author_prefixed
from keryx.core.context.rules.repeated_calls import repeat_notes
from keryx.core.context.rules.turn_time import place_lines
from keryx.core.conversations.rules.message import (
    MediaPart,
    Message,
    NewMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    text_of,
)
from keryx.core.values.turn_states import TurnId
from keryx.values import dataclass

TranscriptMessage: TypeAlias = HistoryItem | NewMessage
"""A message from before the turn, or of the turn."""

BEGINNING: Final = "(The conversation begins here.)"

_PLAIN_IDS: Final = frozenset({"anthropic", "bedrock"})
"""The providers that refuse call ids with anything but letters, digits, ``_`` and ``-``."""
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """Everything around the messages of a conversation, and the provider that will read it."""

    instructions: str
    context: str
    provider: str
    """The provider; the thinking of other providers is left out."""
    turn_id: TurnId | None = None
    """The turn that asks; messages that are not stored belong to it."""
    time_lines: Mapping[TurnId, str] = field(default_factory=dict)
    """When each turn began."""
    is_group: bool = False
    """Whether several people write: then each message names its author."""
    request: str | None = None
    """A request of Keryx itself at the end, in a turn that answers no person."""
    limits: frozenset[Limit] = frozenset()
    """What the server refuses."""
    marks_cache: bool = False
    """Whether the provider caches nothing unless the prompt marks where the cached text ends."""


def provider_messages(
    messages: Sequence[TranscriptMessage], framing: Framing, *, media: Mapping[str, bytes] | None = None
) -> list[wire.ModelMessage]:
    """Return the messages for a provider; ``media`` holds contents of attachments, and others are only named."""
    return _RequestBuilder(framing, media or {}).build(messages)


@dataclass(slots=True)
class _RequestBuilder:
    framing: Framing
    media: Mapping[str, bytes]
    sent: list[wire.ModelMessage] = field(default_factory=list)
    notes: Mapping[str, str] = field(default_factory=dict)
    """The notes on repeated calls, by their ids."""

    def build(self, messages: Sequence[TranscriptMessage]) -> list[wire.ModelMessage]:
        framing = self.framing
        self._add_conversation(messages)
        if not self.sent or isinstance(self.sent[0], wire.ModelResponse):
            # For some providers a conversation must begin with a user message.
            self.sent.insert(0, wire.ModelRequest(parts=[keryx_part(BEGINNING)], timestamp=NO_TIME))
        if framing.request is not None:
            self._tell(keryx_part(framing.request))
        if framing.limits:
            return strict_messages(
                self.sent, instructions=framing.instructions, context=framing.context, limits=framing.limits
            )
        self._mark_cache()
        if framing.context:
            self._tell(wire.SystemPromptPart(clean_text(framing.context), timestamp=NO_TIME, scope="request"))
        for message in self.sent:
            if isinstance(message, wire.ModelRequest):
                message.instructions = framing.instructions
        return self.sent

    def _add_conversation(self, messages: Sequence[TranscriptMessage]) -> None:
        paired = pair_calls(
            messages, spelled=_plain_id if self.framing.provider in _PLAIN_IDS else clean_text
        )
        self.notes = repeat_notes(messages, paired, turn_id=self.framing.turn_id)
        lines = place_lines(messages, self.framing.time_lines, turn_id=self.framing.turn_id)
        for number, each in enumerate(messages):
            line = lines.get(number)
            if isinstance(each, Cover):
                heading = f"Summary of messages {each.first_seq} to {each.last_seq}, which are left out here:"
                self._tell(keryx_part(f"{heading}\n{each.summary}"))
            elif each.role == "assistant":
                self._tell_time(line)
                self._answer(each.parts, paired.pairs[number])
            elif each.role != "tool":
                self._tell(self._user_part(each, line))
            self._tell(*(stray_result_part(result) for result in paired.orphan_results[number]))
        self._tell_time(lines.get(len(messages)))

    def _tell(self, *parts: wire.ModelRequestPart) -> None:
        """Add parts to the next user message."""
        if not parts:
            return
        last = self.sent[-1] if self.sent else None
        if isinstance(last, wire.ModelRequest):
            last.parts = [*last.parts, *parts]
        else:
            self.sent.append(wire.ModelRequest(parts=list(parts), timestamp=NO_TIME))

    def _tell_time(self, line: str | None) -> None:
        """Tell when a turn begins that answers no message of its own, such as a repeated one."""
        if line is not None:
            self._tell(keryx_part(line))

    def _mark_cache(self) -> None:
        """Mark the end of the text that the next request begins with too. An empty text cannot be marked."""
        newest = self.sent[-1]
        if not self.framing.marks_cache or isinstance(newest, wire.ModelResponse):
            return
        last = newest.parts[-1]
        if not isinstance(last, wire.UserPromptPart) or last.content:
            self._tell(wire.UserPromptPart([wire.CachePoint()], timestamp=NO_TIME))

    def _answer(self, parts: Sequence[Part], pairs: Sequence[CallPair]) -> None:
        """Add an answer of the model, and the results of its calls right after it."""
        answered = list(self._answer_parts(parts, pairs))
        last = self.sent[-1] if self.sent else None
        if answered and isinstance(last, wire.ModelResponse):
            last.parts = [*last.parts, *answered]
        elif answered:
            self.sent.append(wire.ModelResponse(parts=answered, timestamp=NO_TIME))
        self._tell(*(result_part(pair, note=self.notes.get(pair.call_id)) for pair in pairs))

    def _answer_parts(
        self, parts: Sequence[Part], pairs: Sequence[CallPair]
    ) -> Iterator[wire.ModelResponsePart]:
        calls = iter(pairs)
        signature: dict[str, Any] = {}
        for part in parts:
            match part:
                case TextPart() if part.text:
                    yield wire.TextPart(clean_text(part.text), **signature)
                case ToolCallPart():
                    pair = next(calls)
                    yield wire.ToolCallPart(
                        part.name, call_arguments(part.arguments), pair.call_id, **signature
                    )
                case ThinkingPart():
                    stored = unpack_signature(part, provider=self.framing.provider)
                    if stored is not None and "next" in stored:
                        signature = {"provider_name": stored["by"], **part_fields(stored["next"])}
                        continue
                    if stored is not None:
                        yield wire.ThinkingPart(
                            clean_text(part.text), provider_name=stored["by"], **part_fields(stored)
                        )
                case MediaPart():
                    yield wire.TextPart(attachment_name(part))
                case _:
                    continue
            signature = {}

    def _user_part(self, message: Message | NewMessage, line: str | None) -> wire.UserPromptPart:
        """Return a message of a person or a report of Keryx, after the line with the time of its turn.

        In a group it has the author's name.
        """
        content: list[wire.UserContent] = [
            piece for part in message.parts if (piece := shown_content(part, self.media)) is not None
        ]
        if message.role == "system":
            content.insert(0, "Keryx reports:")
        elif self.framing.is_group and message.author:
            attachments = [piece for piece in content if not isinstance(piece, str)]
            content = [clean_text(author_prefixed(message.author, text_of(message.parts))), *attachments]
        if line is not None and content and isinstance(content[0], str):
            content[0] = f"{line}\n{content[0]}"
        elif line is not None:
            content.insert(0, line)
        if len(content) == 1 and isinstance(content[0], str):
            return wire.UserPromptPart(content[0], timestamp=NO_TIME)
        return wire.UserPromptPart(content or [UNREADABLE], timestamp=NO_TIME)


def _plain_id(call_id: str) -> str:
    return _NOT_PLAIN.sub("_", call_id)
