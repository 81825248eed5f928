"""A Keryx session as the memory of an agent of the OpenAI Agents SDK.

The session returns each item exactly as it was added. Items that the SDK pops or clears stay on their branch, and
search finds their text.
"""

from typing import TYPE_CHECKING, Any, cast

from keryx import InvalidValue, Keryx, SessionId, Source
from keryx.integrations.openai_items import Item, to_items, to_message

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

PLATFORM = "openai-agents"


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
