"""A gate that lets through what it is told to, and remembers all that it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from executors.clock import Clock
from executors.gate.allowance import (
    CapsAllowance,
    Drawn,
    Estimate,
    Full,
    Reservation,
    Tag,
)
from executors.gate.decisions import Allow, Settled
from executors.gate.governor import Deed, Done
from executors.models.base import Model
from rlm.gating import GateWanted, RunGate
from rlm.runs.session import Session


class Counting(CapsAllowance):
    """Remembers whose call each reservation was."""

    spy: Spy

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        if tag is not None:
            self.spy.calls.append((tag.role, tag.node))
        return super().reserve(estimate, tag=tag)


@dataclass(kw_only=True)
class Spy:
    """What came by."""

    decide: Callable[[Deed], Settled] | None = None
    hides: tuple[str, ...] = ()
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    deeds: list[Deed] = field(default_factory=list[Deed])
    done: list[tuple[str, Done]] = field(default_factory=list[tuple[str, Done]])
    models: list[str] = field(default_factory=list[str])
    dropped: int = 0
    flushed: int = 0
    closed: int = 0

    def offers(self, tool: str) -> bool:
        return tool not in self.hides

    async def check(self, deed: Deed) -> Settled:
        self.deeds.append(deed)
        return Allow(aid="a") if self.decide is None else self.decide(deed)

    async def record(self, deed: Deed, done: Done, *, aid: str) -> None:
        self.done.append((deed.tool, done))

    def drop(self, aid: str) -> None:
        self.dropped += 1

    def model(self, model: Model) -> Model:
        self.models.append(model.info.spec)
        return model

    def flush(self) -> None:
        self.flushed += 1

    def close(self) -> None:
        self.closed += 1

    def open(self, session: Session, wanted: GateWanted, clock: Clock, spent: Drawn) -> RunGate:
        """Stand in for `open_gate`."""
        del session
        allowance = Counting(
            wanted.caps, clock, calls=spent.calls, tokens=spent.tokens, usd=spent.usd
        )
        allowance.spy = self
        return RunGate(
            allowance=allowance,
            governor=self,
            outlet=self,
            data={},
            flush=self.flush,
            close=self.close,
        )

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> Spy:
        """Govern each run from here on."""
        for module in ("rlm.counts.run", "rlm.recursions.run"):
            monkeypatch.setattr(f"{module}.open_gate", self.open)
        return self
