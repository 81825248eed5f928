"""``send_message`` and ``send_to_others``: something said in another chat than the one that is answered.

The first reaches only the person it is said for, the second anybody, and only after the owner saw and allowed the very
text. What either sends is an outbox row like any other.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from keryx.domain.json_value import JsonValue
from keryx.domain.route import SplitChat
from keryx.domain.toolset import GENERAL, TALK
from keryx.domain.turn import StepEffect
from keryx.errors import InvalidValue, NotAllowed, NotFound
from keryx.store.database import Database
from keryx.tools.told import PRIVATE, Offered
from keryx.tools.tool import ToolFailed, Use
from keryx.transactions.send_message import Letter, Posted, send_message

TEXT_CHARACTERS_MAX: Final = 20_000
ASKED_CHARACTERS_MAX: Final = 3_000
"""What a person allows must be seen whole."""
NOWHERE: Final = (
    "There is no such place that may be named here. Use origin, or the platform and id of a direct message."
)


class SendMessage(Offered):
    """Sends to where it is asked for, to the person's own chats, or to a file."""

    name = "send_message"
    description = (
        "Send a text to this person elsewhere than in your answer: to another of their direct messages, back here "
        "before you go on, or into a file. Your answer itself needs no tool."
    )
    effect: StepEffect = "once"
    toolset = TALK
    parameters = {  # noqa: RUF012 - never changed
        "text": {"type": "string", "description": "What to say"},
        "route": {
            "type": "string",
            "description": "origin (this chat), local (a file), a platform (its home channel), or platform:chat with "
            "the chat's id or name; several with commas",
        },
    }
    to_others = False

    def __init__(
        self, database: Database, splitters: Mapping[str, SplitChat], output_dir: Path | None = None
    ) -> None:
        super().__init__(database)
        self._splitters = splitters
        self._output_dir = output_dir

    async def run(self, use: Use) -> JsonValue:
        """Queue it, keep the file, and tell where it goes."""
        letter = Letter(text=self._text(use), route=use.text("route"), key=use.key, splitters=self._splitters)
        try:
            posted = await self._database.write(
                lambda tx: send_message(
                    tx,
                    letter,
                    session_id=use.session_id,
                    person_id=use.person_id,
                    to_others=self.to_others,
                )
            )
        except InvalidValue as error:
            # The nearest names are those of private chats.
            raise ToolFailed(str(error) if use.audience_id is None else NOWHERE) from error
        except (NotAllowed, NotFound) as error:
            raise ToolFailed(str(error)) from error
        return await self._told(letter, posted)

    def _text(self, use: Use) -> str:
        text = use.text("text")
        if len(text) > TEXT_CHARACTERS_MAX:
            raise ToolFailed(f"The text has {len(text)} characters: send at most {TEXT_CHARACTERS_MAX}.")
        return text

    async def _told(self, letter: Letter, posted: Posted) -> str:
        places = [f"to {place}" for place in posted.places]
        if posted.to_file:
            places.append(f"into the file {await self._keep(letter)}")
        return f"On its way {' and '.join(places)}."

    async def _keep(self, letter: Letter) -> str:
        if self._output_dir is None:
            raise ToolFailed("No folder for files is set up here; the other places of the route were served.")
        path = self._output_dir / f"message-{letter.key}.md"

        def write() -> None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(letter.text, encoding="utf-8", errors="replace")

        try:
            await asyncio.to_thread(write)
        except OSError as error:
            raise ToolFailed(
                f"The file could not be written ({error.strerror}); the rest was served."
            ) from error
        return path.name


class SendToOthers(SendMessage):
    """Sends to anybody the gateway knows, after the owner allowed it."""

    name = "send_to_others"
    description = (
        "Send a text to a chat that others read, such as a group, or to another person. The owner is shown the text "
        "and asked first."
    )
    effect: StepEffect = "ask"
    toolset = GENERAL
    to_others = True

    def question(self, use: Use) -> str:
        """Return what the owner is asked: the whole text, and where it goes."""
        if use.audience_id is not None:
            raise ToolFailed(PRIVATE)
        text, route = self._text(use), use.text("route")
        if len(text) + len(route) > ASKED_CHARACTERS_MAX:
            raise ToolFailed(
                f"What a person is to allow must be short: at most {ASKED_CHARACTERS_MAX} characters."
            )
        return f"May I send this to {route}?\n\n{text}"

    def pattern(self, use: Use) -> str:
        """Return where it goes: a lasting yes is about one place."""
        return use.text("route")
