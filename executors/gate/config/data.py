"""Which texts may leave this machine, and what is masked in them."""

from __future__ import annotations

from executors.gate.config.section import Section
from executors.gate.config.texts import Texts
from executors.models.masking import PersonalKind

__all__ = ["DataSection", "PersonalKind"]


class DataSection(Section):
    """What a model on another machine may be shown."""

    hosts: Texts | None = None
    """Hosts that texts may go to: `name`, `name:port` or an address, spelled out and without their
    subdomains. This machine is always allowed; None allows every host, [] none."""
    mask: list[PersonalKind] | tuple[PersonalKind, ...] = ()
    """Kinds of personal data that are masked in what a model on another machine is shown."""
    phone_region: str | None = None
    """Two letters of the country whose telephone numbers may stand without "+"; None finds those alone
    that begin with it."""
