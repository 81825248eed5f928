"""How the tests of tools call them."""

from keryx.core.values.json_value import JsonValue
from keryx.tools.tool import Tool, ToolCall


def use_of(**arguments: JsonValue) -> ToolCall:
    return ToolCall(
        arguments=arguments,
        session_id="20260101_000000_0000abcd",
        person_id=1,
        audience_id=None,
        key="call-1",
    )


async def called(tool: Tool, **arguments: JsonValue) -> str:
    """Call a tool and return what it tells."""
    told = await tool.run(use_of(**arguments))
    assert isinstance(told, str)
    return told
