"""A Keryx session as the memory of an agent of the OpenAI Agents SDK.

The session returns each item exactly as it was added. Items that the SDK pops or clears stay on their branch, and
search finds their text.

The parts of an item that people see (text, calls, results, thoughts) become parts of the message, so that they are
shown and found like any others. The rest of the item is kept in a last thinking part, as a provider's signature:
unchanged, not searched, and not given to another model.
"""

from collections.abc import Iterator, Mapping
from json import dumps, loads
from typing import TYPE_CHECKING, Any, Final, cast

from keryx import (
    InvalidValue,
    Keryx,
    Message,
    NewMessage,
    Part,
    Role,
    SessionId,
    Source,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

PLATFORM = "openai-agents"
Item = dict[str, Any]

_KEPT: Final = "openai_agents"
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


class KeryxSession:
    """The SDK's ``Session`` protocol on an open store.

    ``session_id`` is the id of a Keryx session, or any other text. The same text names the same session, which is
    opened when it is first used.
    """

    def __init__(
        self, session_id: str, keryx: Keryx, *, session_settings: "SessionSettings | None" = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._keryx = keryx
        self._found: SessionId | None = None

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """Return the items, oldest first; with ``limit`` only so many of the newest."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        messages = await self._keryx.transcript(await self._session(), last=limit)
        items = [item for message in messages for item in to_items(message)]
        return cast("list[TResponseInputItem]", items if limit is None else items[-limit:])

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Append items, all of them or none."""
        messages = [to_message(cast(Item, item)) for item in items]
        await self._keryx.append_all(await self._session(), messages)

    async def pop_item(self) -> "TResponseInputItem | None":
        """Take back the last item and return it, or None if there is none."""
        session_id = await self._session()
        while (message := await self._keryx.pop(session_id)) is not None:
            items: list[Any] = to_items(message)
            if items:
                return cast("TResponseInputItem", items[-1])
        return None

    async def clear_session(self) -> None:
        """Take back all items."""
        await self._keryx.clear(await self._session())

    async def _session(self) -> SessionId:
        if self._found is None:
            try:
                self._found = (await self._keryx.get_session(self.session_id)).id
            except InvalidValue:
                source = Source(platform=PLATFORM, chat_id=self.session_id, chat_type="dm")
                self._found = (await self._keryx.session_for(source)).id
        return self._found


def to_message(item: Mapping[str, Any]) -> NewMessage:
    """Return the message that stores ``item``; raise InvalidValue if the item is not a JSON object."""
    try:
        wanted: Item = loads(dumps(dict(item)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"an item of a session must be a JSON object: {error}") from None
    role, seen = _seen(wanted)
    for kept in ((), (_kept(rest=_without(wanted, seen)),)):
        # As text, because the order of names counts too.
        if dumps(list(_items(role, (*seen, *kept)))) == dumps([wanted]):
            return NewMessage(role=role, parts=(*seen, *kept))
    return NewMessage(role=role, parts=(*seen, _kept(item=wanted)))


def to_items(message: Message) -> list[Item]:
    """Return the item that a message stores, or for any other message the items with the same content."""
    return list(_items(message.role, message.parts))


def _seen(item: Item) -> tuple[Role, tuple[Part, ...]]:
    """Return the role of an item's message, and the parts that people see."""
    match item:
        case {
            "type": "function_call",
            "call_id": str(call_id),
            "name": str(name),
            "arguments": str(arguments),
        }:
            return "assistant", (ToolCallPart(call_id=call_id, name=name, arguments=arguments),)
        case {"type": str(kind), "call_id": str(call_id), "output": output} if kind.endswith("_output"):
            name = "" if kind == "function_call_output" else kind.removesuffix("_output")
            return "tool", (ToolResultPart(call_id=call_id, name=name, output=output),)
        case {"type": "reasoning", "summary": list(summary)}:
            return "assistant", tuple(ThinkingPart(text=text) for text in _texts(summary))
        case {"role": str(role), "content": str(text)} if role in _ROLES:
            return _ROLES[role], (TextPart(text=text),)
        case {"role": str(role), "content": list(content)} if role in _ROLES:
            return _ROLES[role], tuple(TextPart(text=text) for text in _texts(content))
        case _:
            return "assistant", ()


def _items(role: Role, parts: tuple[Part, ...]) -> Iterator[Item]:
    kept = _read_kept(parts[-1]) if parts else None
    if kept is None:
        yield from _plain_items(role, parts)
    elif "item" in kept:
        yield kept["item"]
    else:
        seen = parts[:-1]
        plain: Item = next(_plain_items(role, seen), {})
        yield {name: _filled(name, value, plain, seen) for name, value in kept["rest"].items()}


def _plain_items(role: Role, parts: tuple[Part, ...]) -> Iterator[Item]:
    """Yield items with the content of the parts, in the order in which the SDK keeps them."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if texts:
        yield {"role": role, "content": "\n".join(texts)}
    for part in parts:
        if isinstance(part, ToolCallPart):
            arguments = part.arguments if isinstance(part.arguments, str) else dumps(part.arguments)
            yield {
                "type": "function_call",
                "call_id": part.call_id,
                "name": part.name,
                "arguments": arguments,
            }
        elif isinstance(part, ToolResultPart):
            output = part.output if isinstance(part.output, str | list) else dumps(part.output)
            yield {"type": "function_call_output", "call_id": part.call_id, "output": output}


def _without(item: Item, seen: tuple[Part, ...]) -> Item:
    """Return the item with None in place of each value that the parts hold; the order of names stays."""
    role = _ROLES.get(str(item.get("role")), "assistant")
    plain: Item = next(_plain_items(role, seen), {})
    rest: Item = {}
    for name, value in item.items():
        if name in plain and plain[name] == value:
            rest[name] = None
        elif name in ("content", "summary") and isinstance(value, list):
            rest[name] = [{**each, "text": None} if _has_text(each) else [each] for each in value]
        else:
            rest[name] = value
    return rest


def _filled(name: str, value: Any, plain: Item, seen: tuple[Part, ...]) -> Any:
    if value is None:
        return plain.get(name)
    if name not in ("content", "summary") or not isinstance(value, list):
        return value
    texts = iter([part.text for part in seen if isinstance(part, TextPart | ThinkingPart)])
    return [each[0] if isinstance(each, list) else {**each, "text": next(texts, "")} for each in value]


def _kept(**what: Item) -> ThinkingPart:
    return ThinkingPart(text="", signature=dumps({_KEPT: what}, separators=(",", ":")))


def _read_kept(part: Part) -> dict[str, Item] | None:
    signature = part.signature if isinstance(part, ThinkingPart) else None
    if signature is None or not signature.startswith(f'{{"{_KEPT}":'):
        return None
    kept: dict[str, Item] = loads(signature)[_KEPT]
    return kept


def _texts(elements: list[Any]) -> list[str]:
    return [element["text"] for element in elements if _has_text(element)]


def _has_text(element: Any) -> bool:
    return isinstance(element, dict) and isinstance(element.get("text"), str)
