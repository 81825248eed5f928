"""Decide which hosts of the web may be fetched: only hosts with public addresses, unless the owner allows others.

A name is looked up once and each of its addresses is checked. The connection is made to a checked address and not to
the name, because a second lookup could give another answer.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from keryx.errors import ToolFailed
from keryx.values import dataclass

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """The hosts allowed besides public ones: all of them with ``private``, else those named in ``allowed``."""

    private: bool = False
    allowed: frozenset[str] = frozenset()


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


async def find_addresses(host: str, port: int, *, policy: FetchPolicy, resolving: Resolve) -> Sequence[str]:
    """Return the addresses of a host, or raise ``ToolFailed`` if one of them is not allowed."""
    try:
        found = await resolving(host, port)
    except (OSError, UnicodeError):
        raise ToolFailed(f"There is no host {host!r}.") from None
    if not (policy.private or host.lower().rstrip(".") in policy.allowed):
        for address in found:
            if not is_public(address):
                raise ToolFailed(
                    f"{host!r} is at {address}, an address of a private network; only public ones are fetched. "
                    "The owner can allow the host in the setting tools.fetch.allow."
                )
    return found


def is_public(address: str) -> bool:
    """Return whether an address is public, and so is every address embedded in it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(each.is_global and not each.is_multicast for each in (parsed, *_embedded(parsed)))


def _embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses to which a gateway would translate this address."""
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
