"""Why nothing may happen any more: the reasons that are looked at before any rule is.

What counts, and when. A bound is reached when what was used is no less than it; a bound of 0 is
reached at once. Reserved amounts are not used, they only bound what else may be reserved. The order
is fixed: terminated, USD, tokens, calls, resources as they are configured, an unknown price, the
strict projection, turns, rounds of tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from executors.errors import OverBudget
from executors.gate.config.budget import BudgetSection
from executors.gate.config.limits import LimitsSection
from executors.gate.decisions import Halt
from executors.gate.ledger.amounts import shown
from executors.gate.ledger.bounds import RULES, resource_of
from executors.gate.ledger.state import State

__all__ = ["Stop", "no_room", "raise_limit", "stops", "turns_stop", "unpriced_stop"]

# The mean of fewer costs says too little about the next.
_SAMPLES: Final = 3
_COUNTS: Final = {
    "turns": ("limits.maxTurns", "max_turns"),
    "tool rounds": ("limits.maxToolRounds", "max_tool_rounds"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One of the reasons."""

    rule: str
    reason: str
    dimension: str = ""
    """Of a bound that a person may raise: "usd", "tokens", "calls", "resource.<name>"."""
    spent: str = ""
    cap: str = ""
    hint: str
    for_all: bool = True
    """Not so where a bound is reached exactly: what draws nothing on it does not pass it."""

    @property
    def halt(self) -> Halt:
        """The same as a decision."""
        return Halt(rule=self.rule, reason=self.reason, hint=self.hint)

    @property
    def error(self) -> OverBudget:
        """The same as what ends a run."""
        return OverBudget(
            rule=self.rule, reason=self.reason, spent=self.spent, cap=self.cap, hint=self.hint
        )


def stops(
    state: State, caps: Mapping[str, int | None], budget: BudgetSection, limits: LimitsSection
) -> Iterator[Stop]:
    """Yield the reasons there are, the first that counts first.

    Args:
        caps: the bounds that hold, in the order of the configuration.
    """
    if state.terminated is not None:
        yield Stop(
            rule="gate.terminated",
            reason=state.terminated or "somebody ended the run",
            hint="this is final for the run; what was answered so far is kept",
        )
    for name, cap in caps.items():
        used = state.used_of(name)
        if cap is not None and used >= cap:
            yield _used_up(name, used, cap)
    if state.unpriced and budget.fail_closed_on_unpriced and caps.get("usd") is not None:
        yield unpriced_stop(state, caps)
    if budget.strict:
        yield from _projected(state, caps.get("usd"))
    yield from _counted(state, limits)


def no_room(name: str, state: State, cap: int, need: int) -> Stop:
    """Say that the worst case of a call does not fit."""
    used = state.used_of(name)
    held = getattr(state.held, name)
    aside = f", {shown(name, held)} set aside for what is in flight" if held else ""
    return Stop(
        rule=RULES[name],
        reason=f"the next call may take {shown(name, need)}, and of {shown(name, cap)}"
        f" {shown(name, used)} are used{aside}",
        dimension=name,
        spent=shown(name, used),
        cap=shown(name, cap),
        hint=_raise_it(name),
    )


def unpriced_stop(state: State, caps: Mapping[str, int | None]) -> Stop:
    """Say that a price is unknown where that must not be."""
    return Stop(
        rule="budget.unpriced",
        reason="nobody knows what a call costs, and the budget is in USD",
        spent=shown("usd", state.used.usd),
        cap=shown("usd", caps.get("usd")),
        hint="give the price of the model (0 for one that is free), or set"
        " budget.fail_closed_on_unpriced to false and go on with: rlm resume RUN --gate FILE",
    )


def turns_stop(state: State, limits: LimitsSection) -> Stop:
    """Say that the calls in flight take the turns that are left."""
    return _out_of("turns", state.turns, limits.max_turns)


def raise_limit(key: str) -> str:
    """Say how a bound is raised that has no option of its own: a run keeps its configuration."""
    return (
        f"raise limits.{key} in the file of the gate, and go on with: rlm resume RUN --gate FILE;"
        " what was answered so far is kept"
    )


def _used_up(name: str, used: int, cap: int) -> Stop:
    resource = resource_of(name)
    unit = "" if name == "usd" else f" {resource or name}"
    return Stop(
        rule=RULES.get(name) or f"budget.{name}",
        reason=f"{shown(name, used)} of {shown(name, cap)}{unit} are used",
        dimension=name,
        spent=shown(name, used),
        cap=shown(name, cap),
        hint=_raise_it(name),
        for_all=used > cap or resource is not None,
    )


def _projected(state: State, cap: int | None) -> Iterator[Stop]:
    if cap is None or state.priced < _SAMPLES:
        return
    used = state.used.usd
    mean = used // state.priced
    if used + mean > cap:
        yield Stop(
            rule=RULES["usd"],
            reason=f"strict: at {shown('usd', mean)} on average the next round would pass"
            f" {shown('usd', cap)}; {shown('usd', used)} are used",
            dimension="usd",
            spent=shown("usd", used),
            cap=shown("usd", cap),
            hint=_raise_it("usd"),
            for_all=False,  # a reservation, which is the worst case, decides better
        )


def _counted(state: State, limits: LimitsSection) -> Iterator[Stop]:
    if state.turns >= limits.max_turns:
        yield _out_of("turns", state.turns, limits.max_turns)
    if state.tool_rounds >= limits.max_tool_rounds:
        yield _out_of("tool rounds", state.tool_rounds, limits.max_tool_rounds)


def _out_of(what: Literal["turns", "tool rounds"], used: int, cap: float) -> Stop:
    rule, key = _COUNTS[what]
    return Stop(
        rule=rule,
        reason=f"{used:,} of {cap:,} {what} are done",
        spent=f"{used:,}",
        cap=f"{cap:,}",
        hint=raise_limit(key),
    )


def _raise_it(name: str) -> str:
    return (
        f"raise it and go on with: rlm resume RUN --budget {name}=…;"
        " what was answered so far is kept"
    )
