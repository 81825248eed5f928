"""The parameters of a tool: the schema that follows from them, and the checks of a call's arguments."""

import pytest

from keryx.core.values.json_value import JsonValue
from keryx.errors import ToolFailed
from keryx.tools.base_tool import Arguments, BaseTool, Parameter
from keryx.tools.tool import ToolCall
from tests.unit.tools.using import called, use_of


class Greet(BaseTool):
    name = "greet"
    description = "Greet somebody."
    parameters = {  # noqa: RUF012
        "whom": Parameter(help="The name", required=True),
        "words": Parameter(help="What is said", required=False),
        "times": Parameter(kind="integer", help="How often", low=1, high=3),
        "loudly": Parameter(kind="boolean", help="Whether it is heard far away"),
        "manner": Parameter(choices=("kind", "stern")),
        "others": Parameter(kind="strings", help="Further names"),
    }

    async def work(self, call: ToolCall, given: Arguments) -> JsonValue:  # noqa: ARG002 - the same for everybody
        said = f"{given.text('words', 'Hello')}, {given.text('whom')}! " * given.whole("times", 1)
        said += "".join(f"And {other}! " for other in given.texts("others") or [])
        return said.upper() if given.flag("loudly") else said


async def test_the_schema_states_the_checks() -> None:
    offer = Greet().offer
    assert offer.parameters == {
        "type": "object",
        "properties": {
            "whom": {"type": "string", "description": "The name"},
            "words": {"type": "string", "description": "What is said"},
            "times": {"type": "integer", "description": "How often", "minimum": 1, "maximum": 3},
            "loudly": {"type": "boolean", "description": "Whether it is heard far away"},
            "manner": {"type": "string", "enum": ["kind", "stern"]},
            "others": {"type": "array", "items": {"type": "string"}, "description": "Further names"},
        },
        "required": ["whom"],
        "additionalProperties": False,
    }
    assert (offer.effect, offer.toolset) == ("pure", "general")
    assert Greet().question(use_of()) == "May I use greet?"
    assert Greet().pattern(use_of()) is None


async def test_a_missing_or_null_argument_is_the_default() -> None:
    assert await called(Greet(), whom="Ana") == "Hello, Ana! "
    assert await called(Greet(), whom="Ana", words=None, times=2.0, loudly=True) == "HELLO, ANA! HELLO, ANA! "
    assert await called(Greet(), whom="Ana", times="2", others=["Ben"]) == "Hello, Ana! Hello, Ana! And Ben! "


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Give 'whom': a text. The name"),
        ({"whom": None}, "Give 'whom'"),
        ({"whom": " "}, "'whom' is blank"),
        ({"whom": 3}, "'whom' must be a text"),
        ({"whom": "Ana", "times": 0}, "'times' must be at least 1"),
        ({"whom": "Ana", "times": 4}, "'times' must be at most 3"),
        ({"whom": "Ana", "times": True}, "'times' must be a whole number"),
        ({"whom": "Ana", "times": 1.5}, "'times' must be a whole number"),
        ({"whom": "Ana", "times": "9" * 21}, "'times' must be a whole number"),
        ({"whom": "Ana", "manner": "rude"}, "There is no manner 'rude'. Use one of kind, stern."),
        ({"whom": "Ana", "others": "Ben"}, "'others' must be a list of texts"),
        ({"whom": "Ana", "others": ["Ben", " "]}, "'others' must be a list of texts"),
        ({"whom": "Ana", "loudly": "yes"}, "'loudly' must be true or false"),
        ({"whom": "Ana", "time": 1}, "greet has no argument 'time'; did you mean 'times'?"),
        (
            {"whom": "Ana", "zzz": 1},
            "no argument 'zzz'; it takes whom, words, times, loudly, manner, others.",
        ),
    ],
)
async def test_a_wrong_argument_is_named(arguments: dict[str, JsonValue], sentence: str) -> None:
    with pytest.raises(ToolFailed) as failure:
        await called(Greet(), **arguments)
    assert sentence in str(failure.value)


def test_an_argument_that_only_some_calls_need_is_checked_there() -> None:
    parameters = {"rule": Parameter(help="When"), "number": Parameter(kind="integer", help="Which one")}
    given = Arguments({"rule": " ", "number": 3}, parameters)
    with pytest.raises(ToolFailed, match="'rule' is blank"):
        given.needed_text("rule")
    with pytest.raises(ToolFailed, match="'number' must be at most 2"):
        given.needed_number("number", high=2)
    nothing = Arguments({"rule": ""}, parameters)
    assert (nothing.text_or_none("rule"), nothing.whole_or_none("number")) == (None, None)
    with pytest.raises(ToolFailed, match=r"Give 'rule': a text\. When"):
        nothing.needed_text("rule")
    with pytest.raises(ToolFailed, match=r"Give 'number': a whole number\. Which one"):
        nothing.needed_number("number", high=2)
    assert nothing.whole("number", 7, low=1, high=9) == 7
    with pytest.raises(ToolFailed, match="'number' must be at least 1"):
        Arguments({"number": 0}, parameters).whole("number", 7, low=1, high=9)
