"""An ACP agent made with the protocol's own package: it repeats its prompt."""

import asyncio
from typing import Any, cast

import acp
from acp import schema


class Echo:
    """Repeats its prompt."""

    _connection: Any = None

    def on_connect(self, conn: Any) -> None:
        self._connection = conn

    async def initialize(self, protocol_version: int, **_more: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_more: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=f"in {cwd}")

    async def prompt(self, session_id: str, prompt: list[Any], **_more: Any) -> acp.PromptResponse:
        tool = acp.start_tool_call("c1", "look", kind="search", status="pending", raw_input={"at": 1})
        await self._connection.session_update(session_id=session_id, update=tool)
        option = schema.PermissionOption(option_id="ok", name="Yes", kind="allow_once")
        allowed = await self._connection.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="c1", title="look", kind="search"),
            options=[option],
        )
        found = acp.update_tool_call(
            "c1",
            status="completed",
            content=[
                acp.tool_content(acp.text_block(allowed.outcome.outcome)),
                acp.tool_diff_content("a", "b"),
            ],
        )
        await self._connection.session_update(session_id=session_id, update=found)
        said = acp.update_agent_message(acp.text_block(prompt[0].text.splitlines()[-1]))
        await self._connection.session_update(session_id=session_id, update=said)
        return acp.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(cast(Any, Echo())))
