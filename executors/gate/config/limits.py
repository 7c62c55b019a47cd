"""How often a whole run family may act, and how deep."""

from __future__ import annotations

from executors.gate.config.amounts import Bound
from executors.gate.config.section import Section

__all__ = ["LimitsSection"]


class LimitsSection(Section):
    """Bounds of counts over the life of a run family; each is finite unless `inf` is said."""

    max_turns: Bound = 1_000_000
    """Calls of models and of tools together; at the bound the run halts."""
    max_tool_rounds: Bound = 100_000
    """Calls of tools; at the bound the run halts."""
    max_children: Bound = 256
    """Children that were admitted, whatever became of them; the next is denied."""
    max_depth: Bound = 16
    """How deep a node that may have children stands; the root's depth is 0."""
