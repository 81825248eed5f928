"""A request in the form that strict chat templates accept. Pure.

There is one system message and it is first, or none. Behind it, users and model take turns: neighbours are merged. The
context block, which changes from turn to turn, stands in the newest message of a user, so that what comes before it
stays the same.
"""

from collections.abc import Iterator, Sequence
from json import dumps

from pydantic_ai import messages as wire

from keryx.agents.model.providers.request_parts import NO_TIME, keryx_part
from keryx.agents.model.providers.server_limits import Limit

READ = "(I have read these results.)"
"""What the model says between the results of calls and a message of a person: only the model may follow results."""


def strict_messages(
    messages: Sequence[wire.ModelMessage], *, instructions: str, context: str, limits: frozenset[Limit]
) -> list[wire.ModelMessage]:
    """Return the messages, which begin with a request, within the limits of a server."""
    sent = [_without_tools(each) for each in messages] if "no tools" in limits else list(messages)
    has_system = "no system" not in limits
    if context:
        _put_before_newest(sent, keryx_part(context))
    if not has_system:
        _put_first(sent, keryx_part(instructions))
    ordered = [part for each in sent for part in _in_order(each)]
    for each in ordered:
        if isinstance(each, wire.ModelRequest):
            each.instructions = instructions if has_system else None
    return ordered


def _put_first(sent: Sequence[wire.ModelMessage], part: wire.UserPromptPart) -> None:
    first = sent[0]
    assert isinstance(first, wire.ModelRequest), "a conversation begins with a user message"
    first.parts = [part, *first.parts]


def _put_before_newest(sent: Sequence[wire.ModelMessage], part: wire.UserPromptPart) -> None:
    """Put a part before the newest user message; the results of calls are none."""
    for message in reversed(sent):
        if isinstance(message, wire.ModelRequest):
            places = [no for no, each in enumerate(message.parts) if isinstance(each, wire.UserPromptPart)]
            if places:
                message.parts = [*message.parts[: places[-1]], part, *message.parts[places[-1] :]]
                return
    _put_first(sent, part)


def _in_order(message: wire.ModelMessage) -> Iterator[wire.ModelMessage]:
    """Yield a message with its user parts merged into one, which does not follow the results of calls."""
    if isinstance(message, wire.ModelResponse):
        yield message
        return
    said = [part for part in message.parts if isinstance(part, wire.UserPromptPart)]
    results = [part for part in message.parts if not isinstance(part, wire.UserPromptPart)]
    if results:
        yield wire.ModelRequest(parts=results, timestamp=NO_TIME)
    if results and said:
        yield wire.ModelResponse(parts=[wire.TextPart(READ)], timestamp=NO_TIME)
    if said:
        yield wire.ModelRequest(parts=[_merged(said)], timestamp=NO_TIME)


def _merged(parts: Sequence[wire.UserPromptPart]) -> wire.UserPromptPart:
    """Return one user message with the contents of several; texts that follow each other become one text."""
    content: list[wire.UserContent] = []
    for part in parts:
        for piece in [part.content] if isinstance(part.content, str) else part.content:
            if content and isinstance(piece, str) and isinstance(content[-1], str):
                content[-1] = f"{content[-1]}\n\n{piece}"
            else:
                content.append(piece)
    only = content[0] if len(content) == 1 else None
    return wire.UserPromptPart(only if isinstance(only, str) else content, timestamp=NO_TIME)


def _without_tools(message: wire.ModelMessage) -> wire.ModelMessage:
    """Return the message with calls and results as text."""
    if isinstance(message, wire.ModelResponse):
        said = [_told_call(part) if isinstance(part, wire.ToolCallPart) else part for part in message.parts]
        return wire.ModelResponse(parts=said, timestamp=NO_TIME)
    heard = [_told_result(part) if isinstance(part, wire.ToolReturnPart) else part for part in message.parts]
    return wire.ModelRequest(parts=heard, timestamp=NO_TIME)


def _told_call(part: wire.ToolCallPart) -> wire.TextPart:
    arguments = part.args if isinstance(part.args, str) else dumps(part.args, ensure_ascii=False)
    return wire.TextPart(f"[called {part.tool_name}: {arguments}]")


def _told_result(part: wire.ToolReturnPart) -> wire.UserPromptPart:
    return keryx_part(f"[result of {part.tool_name}: {part.content}]")
