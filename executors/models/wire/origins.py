"""Where a key may go: origins of URLs, loopback, and the environment's proxies."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from executors.errors import ConfigError
from executors.secrets import scrub_url

__all__ = [
    "OPENAI_URL",
    "checked_base_url",
    "host_and_port",
    "is_loopback",
    "origin_of",
    "proxy_of",
    "stays_here",
]

OPENAI_URL: Final = "https://api.openai.com/v1"
"""The one server whose key is read from its own variable, without being asked for."""
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_PORTS = {"http": 80, "https": 443}


def checked_base_url(url: str) -> str:
    """Return a base URL without a slash at its end.

    Raises:
        ConfigError: it is no http(s) URL of a host, or holds user info, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(url, str(error)) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise _refused(url, "it is not http(s)://host…")
    if port == 0:
        raise _refused(url, "port 0 is none")
    if not _is_host(parts.hostname):
        raise _refused(url, "its host is no name or address in ASCII")
    if parts.username is not None or parts.password is not None:
        raise _refused(url, "it holds a user name or password: a key is given by --key-env NAME")
    if parts.query or parts.fragment:
        raise _refused(url, "it has a query or a fragment")
    if any(ch <= " " or ch == "\x7f" for ch in url):
        raise _refused(url, "it holds white space or control characters")
    return url.rstrip("/")


def origin_of(url: str) -> str:
    """Return scheme://host:port, with the port always written."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{_host_of(parts)}:{parts.port or _PORTS[parts.scheme]}"


def host_and_port(parts: SplitResult) -> tuple[str, int]:
    """Return the host without brackets, and the port, also where the URL names none."""
    return parts.hostname or "", parts.port or _PORTS[parts.scheme]


def is_loopback(host: str | None) -> bool:
    """Whether the host of a URL means this machine."""
    if host is None:
        return False
    host = host.strip("[]").lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def stays_here(origin: str) -> bool:
    """Whether what a model of an origin is shown stays on this machine."""
    if "://" not in origin:
        return origin == "in-process"
    try:
        return is_loopback(urlsplit(origin).hostname)
    except ValueError:
        return False


def proxy_of(url: str) -> str | None:
    """Return the environment's proxy for a URL; loopback never has one.

    Raises:
        ConfigError: the proxy is no HTTP proxy, or no URL of a host.
    """
    parts = urlsplit(url)
    if is_loopback(parts.hostname):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    _, port = host_and_port(parts)
    if not proxy or proxy_bypass(f"{_host_of(parts)}:{port}"):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    _check_proxy(proxy, f"{parts.scheme.upper()}_PROXY or ALL_PROXY")
    return proxy


def _check_proxy(proxy: str, where: str) -> None:
    hint = "use an http:// proxy, or name the host in NO_PROXY"
    try:
        parts = urlsplit(proxy)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, SplitResult("http", "", "", "", "")
    if parts.scheme not in _PORTS:
        what = f"a proxy of the kind {parts.scheme!r} is set in the environment"
        raise ConfigError(what, where=where, hint=hint)
    if not host:
        raise ConfigError(
            "the proxy that is set in the environment names no host", where=where, hint=hint
        )


def _is_host(host: str) -> bool:
    if ":" in host:
        try:
            ip_address(host)
        except ValueError:
            return False
        return True
    labels = host.removesuffix(".").split(".")
    return len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels)


def _host_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _refused(url: str, why: str) -> ConfigError:
    try:
        shown = scrub_url(url)
    except ValueError:  # not even a URL that can be taken apart
        shown = "…"
    return ConfigError(
        f"the base URL {shown!r} cannot be used: {why}",
        hint="give it like https://host/v1 or http://localhost:8000/v1",
    )
