"""Where a URL goes, read as browsers read it (the URL standard of the WHATWG).

Other readers of URLs find other hosts in some of them, and the one who checks has to see what the one
who connects will see: a URL in which two readers find two hosts goes nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from executors.models.wire.addresses import Address, address_of, why_not_public

if TYPE_CHECKING:
    from ada_url import URL

__all__ = ["Destination", "NoDestination", "destination_of", "host_of"]

_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 65_536
# What every reader takes off both ends.
_PADDING: Final = "".join(map(chr, range(33)))
# Names that stand for this machine or its network by their standards (RFC 6761, 6762, 8375), by the
# root zone's promise to delegate them to nobody, or by what every system's list of hosts says.
_LOCAL: Final = ("home.arpa", "internal", "local", "localdomain", "localhost")
_LOCAL_HOSTS: Final = frozenset({"ip6-localhost", "ip6-loopback"})


class NoDestination(ValueError):
    """A URL that cannot be followed; the text says why and holds no part of it that may be secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Whom a URL asks."""

    url: str
    """As it is sent: normalized, without a fragment."""
    scheme: str
    host: str
    """In lower case and ASCII, without brackets and trailing dot."""
    port: int
    target: str
    """Path and query, as they are asked for."""
    address: Address | None
    """Where the host is an address, in whatever spelling it came."""
    credentials: bool
    """It holds a user name or a password."""
    otherwise: str | None = None
    """The host that other readers of URLs find in it; None where they agree."""

    @property
    def why_not_public(self) -> str | None:
        """What the host is where it is not everybody's, by its spelling alone: nothing is looked up."""
        found = _why_not_public(self.host, self.address)
        if found is None and self.otherwise is not None:
            found = _why_not_public(self.otherwise, address_of(self.otherwise))
        return found


def destination_of(url: object, *, base: str | None = None) -> Destination:
    """Return where a URL goes.

    Args:
        base: the URL in whose answer it stood, where it may be a relative one.

    Raises:
        NoDestination: it is no text, no URL, has no host, or is of another scheme than http and https.
    """
    if not isinstance(url, str):
        raise NoDestination(f"a URL is a text, and this is {type(url).__name__}")
    if len(url) > _LONGEST:
        raise NoDestination(f"a URL of {len(url):,} characters")
    parsed = _parsed(url, base)
    scheme = parsed.protocol.removesuffix(":")
    if scheme not in _PORTS:
        raise NoDestination(f"the scheme {scheme[:20]!r}; only http and https are followed")
    host = _plain(parsed.hostname)
    other = _other_host(url if base is None else parsed.href)
    return Destination(
        url=parsed.href.partition("#")[0],
        scheme=scheme,
        host=host,
        port=int(parsed.port) if parsed.port else _PORTS[scheme],
        target=(parsed.pathname or "/") + parsed.search,
        address=address_of(host),
        credentials=bool(parsed.username or parsed.password),
        otherwise=None if other in (None, host) else other,
    )


def host_of(text: str) -> str:
    """Return a host as `Destination.host` has it.

    Raises:
        NoDestination: it is none: it holds a scheme, a port, a path or nothing.
    """
    bracketed = f"[{text}]" if ":" in text and not text.startswith("[") else text
    if (
        not text
        or any(ch in text for ch in "/\\?#@ \t\r\n")
        or bracketed.rpartition("]")[2][:1] == ":"
    ):
        raise NoDestination(f"{text[:80]!r} is no host")
    return _plain(_parsed(f"http://{bracketed}/").hostname)


def _parsed(url: str, base: str | None = None) -> URL:
    import ada_url  # native, and only who follows URLs pays for it

    try:
        return ada_url.URL(url, base)
    except ValueError:  # an encoding error is one too
        raise NoDestination("no URL") from None


def _plain(hostname: str) -> str:
    host = hostname.removeprefix("[").removesuffix("]").removesuffix(".")
    if not host or any(not label for label in host.split(".")):
        raise NoDestination("a URL without a host")
    return host


def _other_host(url: str) -> str | None:
    """Return the host that the readers after RFC 3986 find, spelled in the same way."""
    try:
        found = urlsplit(url.strip(_PADDING)).hostname
        return None if found is None else host_of(found)
    except NoDestination:
        return "nothing that is a host"
    except ValueError:
        return None


def _why_not_public(host: str, address: Address | None) -> str | None:
    if address is not None:
        return why_not_public(address)
    if host in _LOCAL_HOSTS or any(host == name or host.endswith(f".{name}") for name in _LOCAL):
        return "a name of this machine or its network"
    return None
