"""``ask_user``: a question to the person, whose next words are the call's result.

It is asked as an approval is: the turn waits in the store and not in memory, over restarts, until the person answers
or the time is up.
"""

from keryx.domain.approval import ASK_USER
from keryx.domain.json_value import JsonValue
from keryx.domain.toolset import TALK
from keryx.domain.turn import StepEffect
from keryx.tools.told import Offered
from keryx.tools.tool import ToolFailed, Use

CHOICES_MAX = 10
QUESTION_CHARACTERS_MAX = 3_000
HOW = "Answer with your next message, or /deny."
HOW_TO_CHOOSE = "Answer with a number or in your own words, or /deny."
ONLY_YES = "The person said yes, and nothing more."


class AskUser(Offered):
    """Asks the person something."""

    name = ASK_USER
    description = (
        "Ask the person a question you cannot go on without, and get the answer. Nothing else is done until it is "
        "there, which may take hours."
    )
    effect: StepEffect = "ask"
    toolset = TALK
    parameters = {  # noqa: RUF012 - never changed
        "question": {"type": "string", "description": "The question, understandable by itself"},
        "choices": {
            "type": "array",
            "items": {"type": "string"},
            "description": f"Up to {CHOICES_MAX} answers to choose from; others are possible, too",
        },
    }
    optional = ("choices",)

    def question(self, use: Use) -> str:
        """Return what the person is asked."""
        asked = use.text("question").strip()
        choices = _choices(use)
        if len(asked) + sum(map(len, choices)) > QUESTION_CHARACTERS_MAX:
            raise ToolFailed(
                f"Ask more briefly: at most {QUESTION_CHARACTERS_MAX} characters with all choices."
            )
        numbered = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
        return "\n".join([asked, *numbered, HOW_TO_CHOOSE if choices else HOW])

    async def run(self, use: Use) -> JsonValue:
        """Return what the person answered."""
        if use.answer is None:
            return ONLY_YES
        choices = _choices(use)
        said = use.answer.strip().rstrip(".)")
        if said.isascii() and said.isdigit() and len(said) <= len(str(CHOICES_MAX)):
            return choices[int(said) - 1] if 1 <= int(said) <= len(choices) else use.answer
        return use.answer


def _choices(use: Use) -> list[str]:
    choices = use.names("choices") or []
    if len(choices) > CHOICES_MAX:
        raise ToolFailed(f"Give at most {CHOICES_MAX} choices.")
    return choices
