"""Send a message along a route, from within a conversation.

A message reaches only known chats. Without the owner's approval it reaches only the chat of the conversation and the
person's own direct messages, so that one audience's words are not told to another.
"""

from collections.abc import Mapping
from dataclasses import field

from keryx.core.conversations.rules.source import Source
from keryx.core.conversations.tables import sessions
from keryx.core.conversations.views.chats import list_chats
from keryx.core.deliveries.rules.route import (
    Address,
    LocalFile,
    Route,
    SplitChat,
    ToChat,
    parse_route,
    resolve_route,
    split_at_first_colon,
)
from keryx.core.deliveries.tables import home_channels, outbox
from keryx.core.deliveries.transactions.queue_delivery import queue_delivery
from keryx.core.people.tables import people
from keryx.core.turns.tables import turns
from keryx.errors import InvalidValue, NotAllowed
from keryx.store.database import Tx
from keryx.values import dataclass

ENDED = "The turn is over, so nothing is sent for it any more."
NOT_YOURS = (
    "{place} is read by others than this conversation, so nothing was sent. "
    "Use origin, or a direct message of this person."
)
OWNER_ONLY = "Only the owner may send to {what}, so nothing was sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A text, its route as a person writes it, and the key under which it is sent once."""

    text: str
    route: str
    key: str
    splitters: Mapping[str, SplitChat] = field(default_factory=dict)
    """How platforms split a chat from a thread; by default at the first colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued:
    """The message is queued for these places; with ``to_file`` the caller must also write it to a file."""

    places: tuple[str, ...]
    to_file: bool


def send_message(
    tx: Tx, message: OutgoingMessage, *, session_id: str, person_id: int, to_others: bool = False
) -> MessageQueued:
    """Queue a message for every place of its route; a repeated call in the same turn queues nothing more.

    ``to_others`` means that the person approved other chats; only the owner can. Raises ``InvalidValue`` for an unknown
    route, with the nearest names, and ``NotAllowed``.
    """
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    turn = turns.find_live_turn(tx, session_id)
    if turn is None:
        raise NotAllowed(ENDED)
    is_owner = people.get_person(tx, person_id).role == "owner"
    if to_others and not is_owner:
        raise NotAllowed(OWNER_ONLY.format(what="others"))
    here = turn.origin or session.source
    known = _reachable_chats(tx, here, person_id=person_id, to_others=to_others)
    found = _resolve(tx, message, here, known)
    addresses = [place for place in found if isinstance(place, Address)]
    for address in addresses:
        # A home channel need not be the person's own.
        if not to_others and (address.platform, address.chat_id) not in known:
            raise NotAllowed(NOT_YOURS.format(place=str(address)))
    to_file = any(isinstance(place, LocalFile) for place in found)
    if to_file and not is_owner:
        raise NotAllowed(OWNER_ONLY.format(what="local, a file of this machine"))
    for address in addresses:
        key = f"{message.key}-{address}"
        if not outbox.is_queued(tx, turn_id=turn.id, key=key):
            queue_delivery(tx, message.text, to=address, key=key, session_id=session_id, turn_id=turn.id)
    return MessageQueued(places=tuple(_describe(address, known) for address in addresses), to_file=to_file)


def _reachable_chats(
    tx: Tx, here: Source, *, person_id: int, to_others: bool
) -> dict[tuple[str, str], Source]:
    """Return the chats that the message may reach, by platform and id, with the account that was used last."""
    places = list_chats(tx, person_id=None if to_others else person_id)
    durable = [place.durable for place in [*places, here]]
    return {(place.platform, place.chat_id): place for place in durable}


def _resolve(
    tx: Tx, message: OutgoingMessage, here: Source, known: Mapping[tuple[str, str], Source]
) -> list[Address | LocalFile]:
    channels = {platform: home.address for platform, home in home_channels.list_homes(tx).items()}
    chats: dict[str, dict[str, str]] = {platform: {} for platform in channels}
    for (platform, chat_id), source in known.items():
        chats.setdefault(platform, {})[chat_id] = source.chat_name or source.user_name or chat_id
    splitters = {
        platform: _splitter(chats[platform], message.splitters.get(platform, split_at_first_colon))
        for platform in chats
    }
    found: list[Address | LocalFile] = []
    for target in parse_route(message.route, splitters=splitters, chats=chats).targets:
        # A chat is reached through the account that was used there last, whatever account is used here.
        through = known[target.platform, target.chat_id] if isinstance(target, ToChat) else here
        found += resolve_route(Route(targets=(target,)), origin=through, homes=channels, first_accounts={})
    for place in found:
        if isinstance(place, LocalFile) and place.instead_of is not None:
            raise InvalidValue(
                f"route {place.instead_of!r}: there is no home channel; name a chat, or let /sethome make one there"
            )
    return list(dict.fromkeys(found))


def _splitter(chats: Mapping[str, str], split: SplitChat) -> SplitChat:
    """Return a function that splits a chat from a thread; known ids and names may contain colons."""
    names = {name.casefold() for name in (*chats, *chats.values())}
    return lambda text: (text, None) if text.casefold() in names else split(text)


def _describe(address: Address, known: Mapping[tuple[str, str], Source]) -> str:
    source = known.get((address.platform, address.chat_id))
    return str(address) if source is None else f"{address} ({source.describe()})"
