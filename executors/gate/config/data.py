"""Which texts may leave this machine, and what is masked in them."""

from __future__ import annotations

from typing import Literal

from executors.gate.config.section import Section

__all__ = ["DataSection", "PersonalKind"]

PersonalKind = Literal["email", "phone", "iban", "card", "ip"]
"""A kind of personal data that is found by its form, and by its check digits where it has them."""


class DataSection(Section):
    """What a model on another machine may be shown."""

    hosts: list[str] | tuple[str, ...] | None = None
    """Hosts that texts may go to: `name`, `name:port` or an address, spelled out and without their
    subdomains. This machine is always allowed; None allows every host, [] none."""
    mask: list[PersonalKind] | tuple[PersonalKind, ...] = ()
    """Kinds of personal data that are masked in what a model on another machine is shown."""
