"""What is told of a tool's arguments, and what is said about wrong ones."""

import pytest

from keryx.domain.json_value import JsonValue
from keryx.tools.plain import Arguments, Parameter, PlainTool
from keryx.tools.tool import ToolFailed, Use
from tests.unit.tools.using import called, use_of


class Greet(PlainTool):
    name = "greet"
    description = "Greet somebody."
    parameters = {  # noqa: RUF012
        "whom": Parameter(help="The name", required=True),
        "words": Parameter(help="What is said", required=False),
        "times": Parameter(kind="integer", help="How often", low=1, high=3),
        "loudly": Parameter(kind="boolean", help="Whether it is heard far away"),
    }

    async def work(self, use: Use, given: Arguments) -> JsonValue:  # noqa: ARG002 - the same for everybody
        said = f"{given.text('words', 'Hello')}, {given.text('whom')}! " * given.whole("times", 1)
        return said.upper() if given.flag("loudly") else said


async def test_the_schema_tells_what_is_checked() -> None:
    offer = Greet().offer
    assert offer.parameters == {
        "type": "object",
        "properties": {
            "whom": {"type": "string", "description": "The name"},
            "words": {"type": "string", "description": "What is said"},
            "times": {"type": "integer", "description": "How often", "minimum": 1, "maximum": 3},
            "loudly": {"type": "boolean", "description": "Whether it is heard far away"},
        },
        "required": ["whom"],
        "additionalProperties": False,
    }
    assert (offer.effect, offer.toolset) == ("pure", "general")
    assert Greet().question(use_of()) == "May I use greet?"
    assert Greet().pattern(use_of()) is None


async def test_what_is_not_said_or_null_is_the_default() -> None:
    assert await called(Greet(), whom="Ana") == "Hello, Ana! "
    assert await called(Greet(), whom="Ana", words=None, times=2.0, loudly=True) == "HELLO, ANA! HELLO, ANA! "


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "Give 'whom': a text. The name"),
        ({"whom": None}, "Give 'whom'"),
        ({"whom": " "}, "'whom' says nothing"),
        ({"whom": 3}, "'whom' must be a text"),
        ({"whom": "Ana", "times": 0}, "'times' must be at least 1"),
        ({"whom": "Ana", "times": 4}, "'times' must be at most 3"),
        ({"whom": "Ana", "times": True}, "'times' must be a whole number"),
        ({"whom": "Ana", "times": 1.5}, "'times' must be a whole number"),
        ({"whom": "Ana", "loudly": "yes"}, "'loudly' must be true or false"),
        ({"whom": "Ana", "time": 1}, "greet has no argument 'time'; did you mean 'times'?"),
        ({"whom": "Ana", "zzz": 1}, "no argument 'zzz'; there are whom, words, times, loudly."),
    ],
)
async def test_a_wrong_argument_is_named(arguments: dict[str, JsonValue], sentence: str) -> None:
    with pytest.raises(ToolFailed) as failure:
        await called(Greet(), **arguments)
    assert sentence in str(failure.value)
