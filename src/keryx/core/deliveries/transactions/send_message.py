"""Send something along a route, from within a conversation.

It reaches only chats that somebody spoke in. Without the owner's word it goes back to where it was asked for, or to the
person's own direct messages; so nothing that was said to some people is told to others.
"""

from collections.abc import Iterable, Mapping
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
    """What is to be sent, where to as a person writes it, and the key under which it is sent once."""

    text: str
    route: str
    key: str
    splitters: Mapping[str, SplitChat] = field(default_factory=dict)
    """How platforms take a chat and a thread apart; at the first colon where one is not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued:
    """It is on its way to these places; ``to_file`` asks whoever called to keep it as a file, too."""

    places: tuple[str, ...]
    to_file: bool


def send_message(
    tx: Tx, letter: OutgoingMessage, *, session_id: str, person_id: int, to_others: bool = False
) -> MessageQueued:
    """Queue a letter for every place of its route, each once however often this runs for one turn.

    ``to_others`` says that the person was asked and allowed it; that counts for the owner alone. Raises
    ``InvalidValue`` for a route that leads nowhere, with the nearest names, and ``NotAllowed``.
    """
    session = sessions.get_visible(tx, session_id, person_id=person_id)
    turn = turns.find_live_turn(tx, session_id)
    if turn is None:
        raise NotAllowed(ENDED)
    is_owner = people.get_person(tx, person_id).role == "owner"
    if to_others and not is_owner:
        raise NotAllowed(OWNER_ONLY.format(what="others"))
    here = turn.origin or session.source
    known = _known(tx, here, person_id=person_id, to_others=to_others)
    found = _resolve(tx, letter, here, known)
    addresses = [place for place in found if isinstance(place, Address)]
    _check(addresses, known, to_others=to_others)
    to_file = any(isinstance(place, LocalFile) for place in found)
    if to_file and not is_owner:
        raise NotAllowed(OWNER_ONLY.format(what="local, a file of this machine"))
    for address in addresses:
        _queue(tx, letter, address, turn=turn)
    return MessageQueued(places=tuple(_named(address, known) for address in addresses), to_file=to_file)


def _known(tx: Tx, here: Source, *, person_id: int, to_others: bool) -> dict[tuple[str, str], Source]:
    """Return the chats that may be sent to, by platform and id; of several accounts the one that was spoken to last."""
    places = list_chats(tx, person_id=None if to_others else person_id)
    durable = [place.durable for place in [*places, here]]
    return {(place.platform, place.chat_id): place for place in durable}


def _resolve(
    tx: Tx, letter: OutgoingMessage, here: Source, known: Mapping[tuple[str, str], Source]
) -> list[Address | LocalFile]:
    channels = {platform: home.address for platform, home in home_channels.list_homes(tx).items()}
    chats: dict[str, dict[str, str]] = {platform: {} for platform in channels}
    for (platform, chat_id), source in known.items():
        chats.setdefault(platform, {})[chat_id] = source.chat_name or source.user_name or chat_id
    splitters = {
        platform: _splitter(chats[platform], letter.splitters.get(platform, split_at_first_colon))
        for platform in chats
    }
    found: list[Address | LocalFile] = []
    for target in parse_route(letter.route, splitters=splitters, chats=chats).targets:
        # A chat is reached through the account it was spoken to, whichever is spoken to here.
        through = known[target.platform, target.chat_id] if isinstance(target, ToChat) else here
        found += resolve_route(Route(targets=(target,)), origin=through, homes=channels, first_accounts={})
    for place in found:
        if isinstance(place, LocalFile) and place.instead_of is not None:
            raise InvalidValue(
                f"route {place.instead_of!r}: there is no home channel; name a chat, or let /sethome make one there"
            )
    return list(dict.fromkeys(found))


def _splitter(chats: Mapping[str, str], split: SplitChat) -> SplitChat:
    """Return how a platform's chats are taken apart: an id or a name that is known may contain colons."""
    names = {name.casefold() for name in (*chats, *chats.values())}
    return lambda text: (text, None) if text.casefold() in names else split(text)


def _check(addresses: Iterable[Address], known: Mapping[tuple[str, str], Source], *, to_others: bool) -> None:
    """Refuse what is neither here nor the person's own; a home channel may be anybody's."""
    for address in addresses:
        if not to_others and (address.platform, address.chat_id) not in known:
            raise NotAllowed(NOT_YOURS.format(place=str(address)))


def _queue(tx: Tx, letter: OutgoingMessage, address: Address, *, turn: turns.Turn) -> None:
    key = f"{letter.key}-{address}"
    if outbox.is_queued(tx, turn_id=turn.id, idempotency_key=key):
        return
    queue_delivery(tx, letter.text, to=address, key=key, session_id=turn.session_id, turn_id=turn.id)


def _named(address: Address, known: Mapping[tuple[str, str], Source]) -> str:
    source = known.get((address.platform, address.chat_id))
    return str(address) if source is None else f"{address} ({source.describe()})"
