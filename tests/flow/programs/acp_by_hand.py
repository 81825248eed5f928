"""An ACP agent in plain Python that follows the last line of a prompt, and logs everything it receives.

``python acp_by_hand.py BOOK [load]``: with ``load`` it takes up earlier conversations.
"""

import json
import os
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

BOOK = Path(sys.argv[1])
CAN_LOAD = "load" in sys.argv[2:]
writing = threading.Lock()
answers: dict[str, "Queue[dict[str, Any]]"] = {}
cancelled: dict[str, threading.Event] = {}


def send(**message: Any) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(**what: Any) -> None:
    with writing, BOOK.open("a", encoding="utf-8") as book:
        book.write(json.dumps(what) + "\n")


def update(session: str, what: str, **more: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **more}})


def say(session: str, text: str, kind: str = "agent_message_chunk") -> None:
    update(session, kind, content={"type": "text", "text": text})


def ask_permission(session: str) -> str:
    """Return the chosen option, or the outcome of the question."""
    answers[session] = Queue()
    options = [
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    call = {"toolCallId": "p1", "title": "delete the hotel", "kind": "delete", "rawInput": {"name": "Roma"}}
    params = {"sessionId": session, "toolCall": call, "options": options}
    send(id=f"ask-{session}", method="session/request_permission", params=params)
    outcome = answers[session].get()["result"]["outcome"]
    return str(outcome.get("optionId", outcome["outcome"]))


def may_i(session: str) -> str:
    say(session, "I want to delete it.")
    update(session, "tool_call", toolCallId="d1", title="delete the hotel", kind="delete", status="pending")
    chosen = ask_permission(session)
    note(chosen=chosen)
    if chosen == "cancelled":
        return "cancelled"
    done = chosen == "yes"
    text = "deleted" if done else "not allowed"
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    update(
        session,
        "tool_call_update",
        toolCallId="d1",
        status="completed" if done else "failed",
        content=content,
    )
    say(session, "\n\nIt is gone." if done else "\n\nIt stays.")
    return "end_turn"


def use(session: str) -> str:
    say(session, "I look.")
    update(session, "tool_call", toolCallId="t1", title="read it", kind="read", rawInput={"path": "x"})
    update(session, "tool_call_update", toolCallId="t1", status="in_progress")
    update(session, "tool_call_update", toolCallId="t1", status="completed", rawOutput={"size": 3})
    update(session, "tool_call", toolCallId="t2", title="begin it", kind="execute", status="pending")
    say(session, "\n\nIt has three.")
    return "end_turn"


def hang(session: str) -> str:
    say(session, "one two")
    note(hangs=session)
    cancelled[session].wait()
    note(cancelled=session)
    return "cancelled"


def die(session: str) -> str:
    say(session, "It was")
    sys.stderr.write("nobody reads of the hotel here\n")
    sys.stderr.flush()
    os._exit(3)


def answer(session: str, text: str) -> str:
    """Follow the prompt, and return the stop reason."""
    wish = text.strip().splitlines()[-1]
    if wish == "may you" or "You may. Go on with it now." in text:
        return may_i(session)
    if wish in ("use", "hang", "die"):
        return {"use": use, "hang": hang, "die": die}[wish](session)
    if wish == "refuse":
        return "refusal"
    if wish == "think":
        say(session, "hm", "agent_thought_chunk")
    say(session, "heard: ")
    say(session, wish)
    return "end_turn"


def prompt(number: int, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    text = "\n".join(block.get("text", f"[{block['type']}]") for block in params["prompt"])
    note(prompt=text, session=session)
    cancelled[session] = threading.Event()
    if text.endswith("fail"):
        send(id=number, error={"code": -32603, "message": "Internal error", "data": {"details": "no paper"}})
    elif text.endswith("sign in"):
        send(id=number, error={"code": -32000, "message": "Authentication required"})
    else:
        usage = {"totalTokens": 5, "inputTokens": 3, "outputTokens": 2}
        send(id=number, result={"stopReason": answer(session, text), "usage": usage})


def main() -> None:
    opened = 0
    for line in sys.stdin:
        message = json.loads(line)
        number, params = message.get("id"), message.get("params") or {}
        match message.get("method"):
            case "initialize":
                can = {"loadSession": CAN_LOAD, "promptCapabilities": {"image": True}}
                send(id=number, result={"protocolVersion": 1, "agentCapabilities": can})
            case "session/new":
                opened += 1
                note(new=f"s{os.getpid()}-{opened}", folder=params["cwd"])
                send(id=number, result={"sessionId": f"s{os.getpid()}-{opened}"})
            case "session/load":
                note(load=params["sessionId"])
                say(params["sessionId"], "nobody listens to what was said before")
                send(id=number, result={})
            case "session/prompt":
                threading.Thread(target=prompt, args=(number, params), daemon=True).start()
            case "session/cancel":
                cancelled[params["sessionId"]].set()
                if params["sessionId"] in answers:
                    answers[params["sessionId"]].put({"result": {"outcome": {"outcome": "cancelled"}}})
            case _:
                answers[str(number).removeprefix("ask-")].put(message)


main()
