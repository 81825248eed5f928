"""``send_message``: send a text to another chat than the one that is answered.

The text becomes an outbox row like any other message.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from keryx.core.deliveries.rules.route import SplitChat
from keryx.core.deliveries.transactions.send_message import OutgoingMessage, send_message
from keryx.core.people.rules.toolset import MESSAGING
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import InvalidValue, ToolFailed
from keryx.store.database import Database
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall

TEXT_CHARACTERS_MAX: Final = 20_000
NOWHERE: Final = (
    "There is no such place that may be named here. Use origin, or the platform and id of a direct message."
)


class SendMessage(BaseTool):
    """Sends a text to the chat that asked, to the person's own chats, or to a file."""

    name = "send_message"
    description = (
        "Send a text to this person elsewhere than in your answer: to another of their direct messages, to this chat "
        "before you continue, or into a file. Your answer itself needs no tool."
    )
    effect: StepEffect = "once"
    toolset = MESSAGING
    parameters = {  # noqa: RUF012 - never changed
        "text": Parameter(help="The text", required=True),
        "route": Parameter(
            help="origin (this chat), local (a file), a platform (its home channel), or platform:chat with "
            "the chat's id or name; several with commas",
            required=True,
        ),
    }
    to_others = False
    """Whether the text may go to other people."""

    def __init__(
        self, database: Database, splitters: Mapping[str, SplitChat], output_dir: Path | None = None
    ) -> None:
        self._database = database
        self._splitters = splitters
        self._output_dir = output_dir

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Queue the text, write the file, and return where the text goes."""
        letter = OutgoingMessage(
            text=text_to_send(given), route=given.text("route"), key=call.key, splitters=self._splitters
        )
        try:
            posted = await self._database.write(
                lambda tx: send_message(
                    tx,
                    letter,
                    session_id=call.session_id,
                    person_id=call.person_id,
                    to_others=self.to_others,
                )
            )
        except InvalidValue as error:
            if call.audience_id is None:
                raise
            # The error names similar chats, which are private.
            raise ToolFailed(NOWHERE) from error
        places = [f"to {place}" for place in posted.places]
        if posted.to_file:
            places.append(f"into the file {await self._write_file(letter)}")
        return f"On its way {' and '.join(places)}."

    async def _write_file(self, letter: OutgoingMessage) -> str:
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


def text_to_send(given: Arguments) -> str:
    """Return the text of a call, or raise ``ToolFailed`` if it is too long."""
    text = given.text("text")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise ToolFailed(f"The text has {len(text)} characters: send at most {TEXT_CHARACTERS_MAX}.")
    return text
