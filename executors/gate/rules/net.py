"""Which hosts a tool may ask, by its URL alone: no name is ever looked up here."""

from __future__ import annotations

from executors.errors import ConfigError
from executors.gate.actions import Action
from executors.gate.config.net import NetSection
from executors.gate.decisions import Deny
from executors.models.wire.destinations import (
    Destination,
    NoDestination,
    destination_of,
    host_of,
)

__all__ = ["NetRule"]

_NAMES = ("url", "uri")


class NetRule:
    """Judges fetches, and every other tool that is given an http(s) URL.

    Raises:
        ConfigError: an entry of `allow_domains` is no host.
    """

    def __init__(self, section: NetSection) -> None:
        self._denies_private = section.deny_private_ips
        allowed = section.allow_domains
        self._allowed = None if allowed is None else tuple(_Allowed(one) for one in allowed)

    def deny(self, action: Action) -> Deny | None:
        """Return why an action may not reach where it wants to; None where it may, or reaches nothing.

        Every URL that it is given has to pass, wherever it stands.
        """
        if action.kind not in ("fetch", "tool"):
            return None
        for url in action.values(*_NAMES):
            found = self.refusal(url) if action.kind == "fetch" else self._refused_beside(url)
            if found is not None:
                return found
        return None

    def refusal(self, url: object) -> Deny | None:
        """Return why a URL may not be followed; for each hop of a redirect too."""
        try:
            there = destination_of(url)
        except NoDestination as why:
            return Deny(rule="net.invalidUrl", reason=f"it cannot be followed: {why}")
        return self._refused(there)

    def why_not(self, url: str) -> str | None:
        """Return the refusal of a URL as text: the check that a fetch asks on each hop."""
        found = self.refusal(url)
        return None if found is None else f"[deny: {found.rule}] {found.reason}"

    def _refused_beside(self, url: object) -> Deny | None:
        """Judge what stands beside other arguments of any tool: what is no http(s) URL is its own."""
        try:
            there = destination_of(url)
        except NoDestination:
            return None
        return self._refused(there)

    def _refused(self, there: Destination) -> Deny | None:
        shown = there.host[:100]
        if self._denies_private and (why := there.why_not_public) is not None:
            return Deny(
                rule="net.denyPrivateIps",
                reason=f"{shown!r} is not a public host ({why}); "
                "net.deny_private_ips: false allows it",
            )
        if there.otherwise is not None:
            return Deny(
                rule="net.invalidUrl",
                reason=f"some read the host {shown!r} in it, others {there.otherwise[:100]!r}",
            )
        if self._allowed is None or any(one.covers(there) for one in self._allowed):
            return None
        return Deny(
            rule="net.allowDomains", reason=f"{shown!r} is none of the hosts in net.allow_domains"
        )


class _Allowed:
    """An entry of the list."""

    def __init__(self, entry: str) -> None:
        self._below_alone = entry.startswith("*.")
        try:
            self._host = host_of(entry.removeprefix("*."))
        except NoDestination:
            raise _refused_entry(entry) from None
        if "*" in self._host:
            raise _refused_entry(entry)

    def covers(self, there: Destination) -> bool:
        if there.host == self._host:
            return not self._below_alone
        return there.host.endswith(f".{self._host}")


def _refused_entry(entry: str) -> ConfigError:
    return ConfigError(
        f"net.allow_domains holds {entry!r}, which is no host",
        where="the gate's configuration",
        hint="write a name such as example.com (its subdomains are allowed with it), *.example.com "
        "(these alone) or an address, without scheme, port and path; leave the key out to allow all",
    )
