"""The built-in guide answers while no model is set up.

The guide is deterministic. It says that it is not a model and how to set one up. It answers questions about Keryx's own
state with the same tools that a model would call, so that calls, streaming and approvals can be tried without a key.
"""

import re
from collections.abc import Sequence
from typing import Final

from keryx.agents.agent import NO_ANSWER, SILENT_PURPOSES, Answer, Brief, HistoryItem, Stage
from keryx.agents.model.compaction import Compactor
from keryx.agents.model.setup_hints import SetupHints, find_models
from keryx.core.context.rules.compaction import WINDOW_TOKENS
from keryx.core.context.rules.guide_turns import GREETING, GUIDE
from keryx.core.conversations.rules.message import (
    Message,
    NewMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    text_of,
)
from keryx.core.values.json_value import JsonValue

SETUP: Final = f"{GREETING}: I am only Keryx's built-in guide."
HOW: Final = (
    "{found} To set a model up, run `{command}` and start Keryx again. Any other model is set up in the same way, as "
    "provider:name. Put its provider's own key, such as OPENAI_API_KEY, into the environment or the profile's .env."
)
AGAIN: Final = f"{GREETING}. To set a model up, run `{{command}}` and start Keryx again."
ABILITIES: Final = (
    "Meanwhile everything else works: this conversation is kept, /search finds it again, /help lists the commands. "
    "Ask me about your sessions, schedules, processes or platforms, tell me to search for something, or to remember "
    "something (I will ask you first)."
)

_Intent = tuple[str, dict[str, JsonValue], str]
"""A tool, its arguments, and the text before the call."""

_SEARCH: Final = re.compile(
    r"(?:search(?: for)?|find|look for|what did (?:i|we|you) say about)\s+(?P<query>.+?)[?.!]*\s*",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER: Final = re.compile(r"(?:please )?remember (?:that )?(?P<note>.+?)\s*", re.IGNORECASE | re.DOTALL)
_LISTS: Final = (
    (r"\b(?:sessions?|conversations?|chats?)\b", "list_sessions", "Your conversations:"),
    (r"\bschedul\w*", "list_schedules", "What is scheduled:"),
    (r"\bprocess(?:es)?\b", "list_processes", "What runs in the background:"),
    (r"\bplatforms?\b", "list_platforms", "What is connected:"),
)


class Guide:
    """Answers without a model; ``hints`` say where to look for one."""

    def __init__(self, hints: SetupHints | None = None) -> None:
        self._hints = hints or SetupHints()

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer the last message; a call that already has a result is not repeated."""
        if brief.purpose == "compress":
            compactor = Compactor(stage, window=WINDOW_TOKENS, ask_model=None)
            notice = await compactor.on_request(brief.messages, focus=brief.focus)
            return Answer(message=None, notice=notice)
        if brief.purpose in SILENT_PURPOSES:
            return NO_ANSWER
        asked, results = _asked(brief.messages)
        intent = _intent(asked)
        if intent is not None and not results and intent[0] in {offer.name for offer in brief.tools}:
            tool, arguments, lead = intent
            await stage.say(lead)
            call = ToolCallPart(call_id=f"guide-{brief.turn_id}", name=tool, arguments=arguments)
            step = NewMessage(role="assistant", parts=(TextPart(text=lead), call), finish_reason=GUIDE)
            done = await stage.act(step)
            results = list(done.results)
        text = "\n\n".join(str(each.output) for each in results) or await self._explanation(brief)
        for word in re.findall(r"\S+\s*", text):  # in pieces, as a model writes
            await stage.say(word)
        return Answer(message=NewMessage(role="assistant", parts=(TextPart(text=text),), finish_reason=GUIDE))

    async def _explanation(self, brief: Brief) -> str:
        """Return how to set a model up: once with everything that helps, then in one line."""
        found = await find_models(self._hints)
        if brief.guide_explained:
            return AGAIN.format(command=found.command)
        return f"{SETUP}\n\n{HOW.format(found=found.words, command=found.command)}\n\n{ABILITIES}"

    async def close(self) -> None:
        """Do nothing: the guide has no connection."""


def _asked(messages: Sequence[HistoryItem]) -> tuple[str, list[ToolResultPart]]:
    """Return the last messages of people, and the results of the calls since."""
    asked: list[str] = []
    results: list[ToolResultPart] = []
    for message in reversed(messages):
        if not isinstance(message, Message):
            break
        if message.role == "user":
            asked.append(text_of(message.parts))
        elif asked:
            break
        elif message.role == "tool":
            results += [part for part in message.parts if isinstance(part, ToolResultPart)]
    return "\n".join(reversed(asked)), results[::-1]


def _intent(asked: str) -> _Intent | None:
    text = asked.strip()
    if match := _REMEMBER.fullmatch(text):
        return "remember", {"note": match["note"]}, "I will ask whether I may keep that."
    if match := _SEARCH.fullmatch(text):
        return "search_history", {"query": match["query"]}, "I look for it."
    for pattern, tool, lead in _LISTS:
        if re.search(pattern, text, re.IGNORECASE):
            return tool, {}, lead
    return None
