"""Making ledgers for tests, and a script of what is done with one and what it must say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from executors.clock import VirtualClock
from executors.gate.allowance import Caps, Estimate, Full, Reservation
from executors.gate.config.budget import BudgetSection
from executors.gate.config.limits import LimitsSection
from executors.gate.config.spawning import DeferSection, SpawnSection
from executors.gate.ledger import Kind, Ledger, LedgerAllowance, Totals, recorded
from executors.ids import NodeId
from executors.messages import CallRole

__all__ = [
    "Asker",
    "Config",
    "Step",
    "call",
    "charge",
    "made",
    "refused",
    "reserved",
    "step_admit",
    "step_halt",
    "step_record",
    "step_wait",
]


@dataclass(frozen=True, kw_only=True)
class Config:
    """A configuration as a file would have it."""

    budget: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spawn: Mapping[str, Any] = field(default_factory=dict[str, Any])
    defer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    depth: int = 0


def made(
    path: Path | None = None,
    config: Config | None = None,
    *,
    clock: VirtualClock | None = None,
    caps: Caps | None = None,
    rebuild: Callable[[], Totals] | None = None,
    wait: float = 5.0,
    **budget: Any,  # noqa: ANN401 - values as they stand in a file
) -> Ledger:
    config = config or Config(budget=budget)
    return Ledger(
        path,
        budget=BudgetSection.model_validate(config.budget),
        limits=LimitsSection.model_validate(config.limits),
        spawn=SpawnSection.model_validate(config.spawn),
        defer=DeferSection.model_validate(config.defer),
        caps=caps,
        clock=clock or VirtualClock(),
        depth=config.depth,
        rebuild=rebuild,
        wait=wait,
    )


def call(usd: str | None = "0.9", *, tokens: int = 10, calls: int = 1) -> Estimate:
    return Estimate(tokens=tokens, usd=None if usd is None else Decimal(usd), calls=calls)


def reserved(allowance: LedgerAllowance, estimate: Estimate) -> Reservation:
    got = allowance.reserve(estimate)
    assert isinstance(got, Reservation), got
    return got


def refused(allowance: LedgerAllowance, estimate: Estimate) -> Full:
    got = allowance.reserve(estimate)
    assert isinstance(got, Full)
    return got


def charge(usd: str | None, *, tokens: int = 0, llm: bool = True, **counts: int) -> Totals:
    """Return what a record adds; a cost of None is unknown."""
    return recorded(
        call=llm,
        usd=Decimal(usd or 0),
        unpriced=usd is None,
        tokens=tokens,
        counts=counts,
    )


_ROOT = NodeId("root")


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Whose call it is."""

    role: CallRole = "judge"
    node: NodeId = _ROOT
    model: str = "scripted"


Step = Callable[[Ledger, VirtualClock], None]


def step_record(more: Totals, times: int = 1) -> Step:
    """So many records come in."""

    def step(ledger: Ledger, clock: VirtualClock) -> None:
        for _ in range(times):
            ledger.charge(more)

    return step


def step_halt(rule: str | None, reason: str = "") -> Step:
    """The next check halts by this rule, or by none."""

    def step(ledger: Ledger, clock: VirtualClock) -> None:
        halt = ledger.halts()
        assert (halt and halt.rule) == rule
        assert halt is None or (reason in halt.reason and halt.severity == "halt")

    return step


def step_admit(kind: Kind, rule: str | None = None, reason: str = "", times: int = 1) -> Step:
    """So many actions are let in, or are refused by this rule; both as a look says beforehand."""

    def step(ledger: Ledger, clock: VirtualClock) -> None:
        for _ in range(times):
            looked, got = ledger.refuses(kind), ledger.admit(kind)
            assert looked == got
            assert (got and got.rule) == rule
            assert got is None or (reason in got.reason and got.severity == "action")

    return step


def step_wait(seconds: float) -> Step:
    """Time goes by."""

    def step(ledger: Ledger, clock: VirtualClock) -> None:
        clock.advance(seconds)

    return step
