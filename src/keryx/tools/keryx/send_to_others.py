"""``send_to_others``: send a text to other people, after the owner has seen and allowed it."""

from typing import Final

from keryx.core.people.rules.toolset import GENERAL
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.keryx.send_message import SendMessage, text_to_send
from keryx.tools.keryx.store_reader import PRIVATE
from keryx.tools.tool import ToolCall

ASKED_CHARACTERS_MAX: Final = 3_000
"""The owner must see the whole text that they allow."""


class SendToOthers(SendMessage):
    """Sends a text to a group or to another person."""

    name = "send_to_others"
    description = (
        "Send a text to a chat that others read, such as a group, or to another person. The owner is shown the text "
        "and asked first."
    )
    effect: StepEffect = "ask"
    toolset = GENERAL
    to_others = True

    def question(self, call: ToolCall) -> str:
        """Return the question to the owner: the whole text, and where it goes."""
        if call.audience_id is not None:
            raise ToolFailed(PRIVATE)
        given = self.arguments(call)
        text, route = text_to_send(given), given.text("route")
        if len(text) + len(route) > ASKED_CHARACTERS_MAX:
            raise ToolFailed(
                f"A text that a person is to allow must be short: at most {ASKED_CHARACTERS_MAX} characters."
            )
        return f"May I send this to {route}?\n\n{text}"

    def pattern(self, call: ToolCall) -> str:
        """Return the route: a standing approval covers one place."""
        return self.arguments(call).text("route")
