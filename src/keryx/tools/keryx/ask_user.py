"""``ask_user``: ask the person a question. The person's next message is the result of the call.

The question is stored like an approval: the turn waits in the store and not in memory, over restarts, until the person
answers or the time is up.
"""

from typing import Final

from keryx.core.approvals.rules.approval import ASK_USER
from keryx.core.people.rules.toolset import MESSAGING
from keryx.core.values.json_value import JsonValue
from keryx.core.values.turn_states import StepEffect
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall

CHOICES_MAX: Final = 10
QUESTION_CHARACTERS_MAX: Final = 3_000
HOW_TO_ANSWER: Final = "Answer with your next message, or /deny."
HOW_TO_CHOOSE: Final = "Answer with a number or in your own words, or /deny."
ONLY_YES: Final = "The person said yes, and nothing more."


class AskUser(BaseTool):
    """Asks the person a question."""

    name = ASK_USER
    description = (
        "Ask the person a question that you need answered to continue, and get the answer. The turn waits for it, "
        "which may take hours."
    )
    effect: StepEffect = "ask"
    toolset = MESSAGING
    parameters = {  # noqa: RUF012 - never changed
        "question": Parameter(help="The question, understandable by itself", required=True),
        "choices": Parameter(
            kind="strings", help=f"Up to {CHOICES_MAX} answers to choose from; others are possible, too"
        ),
    }

    def question(self, call: ToolCall) -> str:
        """Return the question with its numbered choices."""
        given = self.arguments(call)
        asked, choices = given.text("question").strip(), _choices(given)
        if len(asked) + sum(map(len, choices)) > QUESTION_CHARACTERS_MAX:
            raise ToolFailed(
                f"Ask more briefly: at most {QUESTION_CHARACTERS_MAX} characters with all choices."
            )
        numbered = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
        return "\n".join([asked, *numbered, HOW_TO_CHOOSE if choices else HOW_TO_ANSWER])

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:
        """Return the person's answer; a number stands for the choice with that number."""
        if call.answer is None:
            return ONLY_YES
        numbered = {str(number): choice for number, choice in enumerate(_choices(given), 1)}
        return numbered.get(call.answer.strip().rstrip(".)").lstrip("0"), call.answer)


def _choices(given: Arguments) -> list[str]:
    choices = given.texts("choices") or []
    if len(choices) > CHOICES_MAX:
        raise ToolFailed(f"Give at most {CHOICES_MAX} choices.")
    return choices
