"""Which addresses belong to everybody, and which are of this machine, this network or nobody.

A table of our own, from the registries of special-purpose addresses (RFC 6890 and what came after)
and in doubt stricter: Python's `is_global` says yes to site-local and to IPv4-compatible addresses,
both of which reach the inside. An address that carries another one is judged by that one too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from executors.errors import ValidationError

__all__ = ["Address", "WhyNot", "address_of", "opened", "why_not_public"]

Address = IPv4Address | IPv6Address
WhyNot = Callable[[Address], str | None]
"""Why an address may not be connected to; None where it may."""

_OF_4: Final = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier's customers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own host"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay to IPv6"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_OF_6: Final = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b:1::/48", "translated inside a network"),
        ("100::/64", "discarded"),
        ("2001::/23", "for protocols"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_6: Final = IPv6Network("2000::/3")
# Networks whose addresses carry one of IPv4, and how far from the right it ends, in bits.
_CARRIERS: Final = (
    (IPv6Network("::ffff:0:0/96"), 0, "IPv4-mapped"),
    (IPv6Network("::ffff:0:0:0/96"), 0, "translated"),
    (IPv6Network("64:ff9b::/96"), 0, "translated"),
    (IPv6Network("2002::/16"), 80, "6to4"),
)
_IPV4: Final = 0xFFFF_FFFF


def why_not_public(address: Address) -> str | None:
    """Return what an address is where it is not everybody's; None where anybody may be asked there."""
    if isinstance(address, IPv4Address):
        return next((why for network, why in _OF_4 if address in network), None)
    for network, shift, kind in _CARRIERS:
        if address in network:
            why = why_not_public(IPv4Address(int(address) >> shift & _IPV4))
            return None if why is None else f"{kind}, {why}"
    found = next((why for network, why in _OF_6 if address in network), None)
    if found is None and address not in _PUBLIC_6:
        return "reserved"
    return found


def address_of(text: str) -> Address | None:
    """Return the address that a host is; None for a name. Brackets and a zone are taken off."""
    host = text.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        return ip_address(host)
    except ValueError:
        return None


def opened(networks: Collection[str]) -> WhyNot:
    """Return the table with networks taken out of it, for who has to reach some of the inside.

    Raises:
        ValidationError: one of them is no network.
    """
    try:
        free = tuple(ip_network(network) for network in networks)
    except ValueError as error:
        raise ValidationError(
            f"{error}: it is no network",
            where="the networks that a fetch may reach although they are private",
            hint="give them like '10.1.0.0/16' or '127.0.0.1/32'",
        ) from None

    def why_not(address: Address) -> str | None:
        return None if any(address in network for network in free) else why_not_public(address)

    return why_not
