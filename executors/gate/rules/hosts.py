"""Which hosts texts may go to: asked of each model before anything is sent to it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from executors.errors import ConfigError
from executors.gate.config.data import DataSection
from executors.gate.decisions import Deny
from executors.models.base import Model, ModelInfo
from executors.models.masked import Masked, masked
from executors.models.masking import Masking
from executors.models.wire.destinations import NoDestination, host_of
from executors.models.wire.origins import proxy_of, stays_here

__all__ = ["DataRule"]

_PORTS: Final = {"http": 80, "https": 443}
_ENTRY: Final = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class DataRule:
    """Lets texts go to the hosts that are listed, and to this machine.

    Raises:
        ConfigError: an entry of `data.hosts` is no host.
        MissingExtra: `data.mask` needs the extra `mask`, which is not installed.
        ValidationError: `data.phone_region` is no region.
    """

    def __init__(self, section: DataSection) -> None:
        hosts = section.hosts
        self._places = None if hosts is None else frozenset(map(_listed, hosts))
        self._shown = ", ".join(hosts or ()) or "no host"
        self._kinds, self._region = tuple(section.mask), section.phone_region
        if self._kinds:
            Masking(self._kinds, region=self._region)

    def masked(self, model: Model) -> Model:
        """Return the model that texts are sent to: behind the mask where it is not on this machine.

        One that is behind it already comes back as it is.
        """
        info = model.info
        if isinstance(model, Masked) and model.hides(self._kinds, region=self._region):
            return model
        if all(stays_here(one.origin) for one in (info, *info.others)):
            return model
        return masked(model, self._kinds, region=self._region)

    def deny_model(self, info: ModelInfo) -> Deny | None:
        """Return why a model may not be asked: for its own host, or that of one that may stand in."""
        for one in (info, *info.others):
            if (found := self.deny_host(one.origin)) is not None:
                return found
        return None

    def deny_host(self, origin: str) -> Deny | None:
        """Return why texts may not go to a model's origin (scheme://host:port); None where they may.

        A proxy reads what goes to a plain http:// server, so that it has to be listed too; what is
        encrypted passes it unread.
        """
        if self._places is None or stays_here(origin):
            return None
        on_the_way = proxy_of(origin) if origin.startswith("http://") else None
        for place in (origin, on_the_way):
            if place is not None and not self._has(place):
                return Deny(
                    rule="data.hosts",
                    reason=f"texts may not go to {_place(place)[0][:100]!r}: data.hosts lists "
                    f"{self._shown[:200]}",
                )
        return None

    def _has(self, origin: str) -> bool:
        assert self._places is not None
        host, port = _place(origin)
        return port is not None and bool({(host, port), (host, None)} & self._places)


def _place(origin: str) -> tuple[str, int | None]:
    """Return host and port of an origin; what names none stands for itself, without a port."""
    try:
        parts = urlsplit(origin)
        return host_of(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme)
    except (NoDestination, ValueError):
        return origin, None


def _listed(entry: str) -> tuple[str, int | None]:
    found = _ENTRY.fullmatch(entry)
    name, port = (entry, None) if found is None else (found["host"], found["port"])
    try:
        host = host_of(name)
    except NoDestination:
        host = "*"
    if "*" in host:
        raise ConfigError(
            f"data.hosts holds {entry!r}, which is no host",
            where="the gate's configuration",
            hint="write api.example.com, api.example.com:8443 or an address, without scheme and path; "
            "[] keeps every text on this machine, and leaving the key out allows every host",
        )
    return host, None if port is None else int(port)
