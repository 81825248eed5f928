"""Which machines may be spoken to on the web: those that everybody could reach, unless the owner says otherwise.

A name is looked up once, every address it stands for is judged, and the connection is made to one of these and not
to the name: a second look could be answered otherwise.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from keryx.tools.tool import ToolFailed
from keryx.values import dataclass

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What may be reached beside the public: everything with ``private``, else the hosts named in ``allowed``."""

    private: bool = False
    allowed: frozenset[str] = frozenset()


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


async def find_addresses(host: str, port: int, *, reach: Reach, resolving: Resolve) -> Sequence[str]:
    """Return the addresses a host may be reached at, or raise ``ToolFailed``; one that may not be spoils all."""
    try:
        found = await resolving(host, port)
    except (OSError, UnicodeError):
        raise ToolFailed(f"There is no host {host!r}.") from None
    if not (reach.private or host.lower().rstrip(".") in reach.allowed):
        for address in found:
            if not is_public(address):
                raise ToolFailed(
                    f"{host!r} is at {address}, an address of a private network; only public ones are fetched. "
                    "The owner can allow the host in the setting tools.fetch.allow."
                )
    return found


def is_public(address: str) -> bool:
    """Say whether an address is one that everybody could reach, whatever other address hides in it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(each.is_global and not each.is_multicast for each in (parsed, *_hidden(parsed)))


def _hidden(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """Yield the addresses to which a gateway would translate this one."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
