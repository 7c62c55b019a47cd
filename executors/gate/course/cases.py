"""One action on its way through a gate, and what people said of it so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from executors.gate.actions import Action
from executors.gate.allowance import Estimate
from executors.gate.decisions import Ask, Halt

__all__ = ["Case", "told"]


@dataclass(slots=True, kw_only=True)
class Case:
    """One check."""

    action: Action
    aid: str
    estimate: Estimate | None = None
    depth: int | None = None
    """Of the node that acts; None is that of the process."""
    excused: set[str] = field(default_factory=set[str])
    """Bounds that a person let this action pass, by their rules."""
    approved: bool = False
    """A person allowed what a rule asked about."""
    topups: int = 0
    """Caps that a person raised for it."""
    counted: dict[str, int] = field(default_factory=dict[str, int])
    """What it was counted as when it was admitted, by kind."""

    def allow(self, open_: Ask | Halt) -> None:
        """A person allows this one action."""
        if isinstance(open_, Ask):
            self.approved = True
        else:
            self.excused.add(open_.rule)


def told(action: Action) -> dict[str, object]:
    """Return an action as one mapping again, for the log and for people."""
    more: dict[str, object] = {"args": dict(action.args)} if action.args else {}
    if action.context:
        more["_ctx"] = dict(action.context)
    if action.broken is not None:
        more["broken"] = action.broken
    return {"type": action.type, **action.fields, **more}
