"""How many children and deferred actions a run family may begin within a minute."""

from __future__ import annotations

from executors.gate.config.amounts import Bound
from executors.gate.config.section import Section

__all__ = ["DeferSection", "SpawnSection"]


class SpawnSection(Section):
    """Processes of agents."""

    rate_per_minute: Bound = 10
    """Those that were admitted within the last 60 s, in the whole family; inf is no bound."""


class DeferSection(Section):
    """Actions for later."""

    rate_per_minute: Bound = 15
    """Those that were admitted within the last 60 s, in the whole family; inf is no bound."""
