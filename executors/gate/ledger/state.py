"""What stands in the file, read and written within one transaction of the caller's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from executors.gate.ledger.amounts import Amounts, nano, usd_of
from executors.gate.ledger.bounds import Bound
from executors.gate.ledger.totals import Totals

__all__ = ["Spent", "State", "load", "save", "save_bound", "save_resources"]

_LATELY: Final = 60.0
_TOP: Final = 2**61
"""Sums stay below what the file's integers hold, whatever is reported."""


class Spent(NamedTuple):
    """What is reported at once: of one call, or of many."""

    amounts: Amounts
    priced: int = 0
    """Rounds that cost something, and how much is known."""
    unpriced: bool | None = None
    """Whether the price of the last round was unknown; None where no round tells."""


@dataclass(slots=True, kw_only=True)
class State:
    """One run family at one moment."""

    now: float
    """Seconds since 1970."""
    used: Amounts
    turns: int
    tool_rounds: int
    children: int
    priced: int
    unpriced: bool | None
    terminated: str | None
    resources: dict[str, int]
    caps: dict[str, Bound]
    held: Amounts
    """Set aside in blocks that have not lapsed."""
    others: bool
    """Some of it by others than who asks."""
    company: bool
    """Others were here within the last minute, whether they hold anything now or not."""
    unpriced_elsewhere: bool
    """Somebody else makes a call whose price nobody knows."""

    def spend(self, spent: Spent) -> None:
        """Add what was reported."""
        self.used = self.used.plus(spent.amounts)
        self.turns += spent.amounts.calls
        self.priced += spent.priced
        if spent.unpriced is not None:
            self.unpriced = spent.unpriced

    def add(self, more: Totals) -> None:
        """Add what happened besides."""
        self.spend(Spent(Amounts(0, more.tokens, nano(more.usd)), more.priced, more.unpriced))
        self.used = self.used.plus(Amounts(calls=more.calls))
        self.turns += more.turns
        self.tool_rounds += more.tool_rounds
        self.children += more.children
        self.terminated = self.terminated or more.terminated
        for name, units in more.resources.items():
            self.resources[name] = min(self.resources.get(name, 0) + units, _TOP)

    def used_of(self, name: str) -> int:
        """Return what was used in the dimension of a bound."""
        match name:
            case "usd" | "tokens" | "calls":
                return cast("int", getattr(self.used, name))
            case _:
                return self.resources.get(name.removeprefix("resource."), 0)

    def totals(self) -> Totals:
        """Return it as others see it."""
        return Totals(
            calls=self.used.calls,
            tokens=self.used.tokens,
            usd=usd_of(self.used.usd),
            unpriced=self.unpriced,
            priced=self.priced,
            turns=self.turns,
            tool_rounds=self.tool_rounds,
            children=self.children,
            resources=dict(self.resources),
            caps={
                name: usd_of(bound.cap) if name == "usd" else usd_of(bound.cap * 10**9)
                for name, bound in self.caps.items()
                if bound.human and bound.cap is not None
            },
            terminated=self.terminated,
        )


def load(file: sqlite3.Connection, now: float, holder: str = "") -> State:
    """Read the state.

    Args:
        now: by the clock, in seconds since 1970.
        holder: who asks, so that the blocks of others are told apart.
    """
    family = file.execute(
        "SELECT calls, tokens, usd, unpriced, priced, turns, tool_rounds, children, terminated"
        " FROM family"
    ).fetchone()
    calls, tokens, usd, unpriced, priced, turns, tool_rounds, children, terminated = family
    held = file.execute(
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0),"
        " coalesce(max(holder != ?1), 0), coalesce(max(unpriced AND holder != ?1), 0)"
        " FROM blocks WHERE NOT lapsed",
        (holder,),
    ).fetchone()
    company = file.execute(
        "SELECT EXISTS (SELECT 1 FROM holders WHERE holder != ? AND seen > ?)",
        (holder, now - _LATELY),
    ).fetchone()
    return State(
        now=now,
        used=Amounts(calls, tokens, usd),
        turns=turns,
        tool_rounds=tool_rounds,
        children=children,
        priced=priced,
        unpriced=None if unpriced is None else bool(unpriced),
        terminated=terminated,
        resources=dict(file.execute("SELECT name, used FROM resources").fetchall()),
        caps={
            name: Bound(cap, bool(human), exempt, bool(warned))
            for name, cap, human, exempt, warned in file.execute(
                "SELECT name, cap, human, exempt, warned FROM caps"
            )
        },
        held=Amounts(*held[:3]),
        others=bool(held[3]),
        company=bool(company[0]),
        unpriced_elsewhere=bool(held[4]),
    )


def save(file: sqlite3.Connection, state: State) -> None:
    """Write the sums; bounds, blocks and resources are written where they change."""
    used = state.used
    file.execute(
        "UPDATE family SET calls = ?, tokens = ?, usd = ?, unpriced = ?, priced = ?, turns = ?,"
        " tool_rounds = ?, children = ?, terminated = ?",
        (
            min(used.calls, _TOP),
            min(used.tokens, _TOP),
            min(used.usd, _TOP),
            state.unpriced,
            state.priced,
            state.turns,
            state.tool_rounds,
            state.children,
            state.terminated,
        ),
    )


def save_bound(file: sqlite3.Connection, name: str, bound: Bound) -> None:
    """Write one bound."""
    file.execute(
        "INSERT INTO caps VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
        " cap = excluded.cap, human = excluded.human, exempt = excluded.exempt,"
        " warned = excluded.warned",
        (name, bound.cap, bound.human, min(bound.exempt, _TOP), bound.warned),
    )


def save_resources(file: sqlite3.Connection, state: State, names: Iterable[str]) -> None:
    """Write what was used of some resources."""
    for name in names:
        file.execute(
            "INSERT INTO resources VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET used = ?2",
            (name, state.resources[name]),
        )
