"""An MCP server with faults, in plain Python over stdio; it logs each start: ``python mcp_by_hand.py LOG``."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BOOK = Path(sys.argv[1])
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "Repeat it.", "annotations": {"readOnlyHint": True}},
    {"name": "keep it", "annotations": {"idempotentHint": True}},
    {"name": "send", "title": "Send it"},
    {"name": "crash", "annotations": {"readOnlyHint": True}},
    {"name": "crash_once"},
    {"name": "sleep"},
    {"name": "fail"},
    {"name": "refuse"},
    {"name": "show"},
    {"name": "fill"},
    {"name": "flood"},
    {"name": "grow"},
]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(what: str) -> int:
    """Log an entry, and return how often it is in the log."""
    with BOOK.open("a", encoding="utf-8") as book:
        book.write(what + "\n")
    return BOOK.read_text(encoding="utf-8").split().count(what)


def text(what: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": what}], **more}


def call(tool: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a tool; None for a tool that never returns."""
    times = note(tool)
    if tool == "crash_once" or (tool == "crash" and times < given.get("times", 2)):
        os._exit(1)
    if tool == "grow":
        TOOLS.append({"name": "grown"})
        send(method="notifications/tools/list_changed")
    results: dict[str, dict[str, Any] | None] = {
        "sleep": None,
        "fail": text("no paper", isError=True),
        "fill": text("x" * 300_000),
        "flood": text("x" * 5_000_001) if tool == "flood" else None,
        "keep it": text("kept", structuredContent={"kept": given}),
        "show": {
            "content": [
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "a text"}},
                {"type": "resource", "resource": {"uri": "a:c", "blob": "AAAA"}},
                {"type": "resource_link", "uri": "a:d", "name": "d"},
            ]
        },
    }
    return results.get(tool, text(f"{tool}: {json.dumps(given)}"))


def main() -> None:
    note("start")
    for line in sys.stdin:
        message = json.loads(line)
        number, params = message.get("id"), message.get("params") or {}
        match message.get("method"):
            case "initialize":
                info = {"name": "by hand", "version": "1"}
                can = {"tools": {"listChanged": True}}
                version = params["protocolVersion"]
                send(id=number, result={"protocolVersion": version, "capabilities": can, "serverInfo": info})
            case "tools/list":
                time.sleep(float(os.environ.get("PATIENCE", "0")))
                tools = [{"inputSchema": {"type": "object"}, **tool} for tool in TOOLS]
                half = len(tools) // 2
                page = (
                    {"tools": tools[half:]}
                    if params.get("cursor")
                    else {"tools": tools[:half], "nextCursor": "more"}
                )
                send(id=number, result=page)
            case "tools/call" if params["name"] == "refuse":
                send(id=number, error={"code": -32602, "message": "never heard of it"})
            case "tools/call":
                result = call(params["name"], params.get("arguments") or {})
                if result is not None:
                    send(id=number, result=result)
            case _ if number is not None:
                send(id=number, error={"code": -32601, "message": "Method not found"})
            case _:
                pass


main()
