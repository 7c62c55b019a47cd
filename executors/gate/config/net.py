"""Which hosts the tools may ask."""

from __future__ import annotations

from executors.gate.config.section import Section
from executors.gate.config.texts import Texts

__all__ = ["NetSection"]


class NetSection(Section):
    """What fetches, and other tools that are given a URL, may reach."""

    allow_domains: Texts | None = None
    """Names with all their subdomains, `*.name` for the subdomains alone, or addresses; None allows
    every host, [] none."""
    deny_private_ips: bool = True
    """Hosts that are this machine, its network or nobody are refused, in whatever spelling. Names are
    not looked up here: the transport of `fetch` checks each address that it connects to."""
