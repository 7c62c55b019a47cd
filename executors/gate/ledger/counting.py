"""What is counted one by one: children, turns, rounds of tools, deferred actions, resources."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Literal, assert_never

from executors.gate.decisions import Deny, Halt
from executors.gate.ledger.books import Books
from executors.gate.ledger.halts import raise_limit
from executors.gate.ledger.rates import admitted, write_admission
from executors.gate.ledger.state import State, load, save_resources
from executors.gate.ledger.totals import Totals

__all__ = ["Counting", "Kind", "Refused"]

Kind = Literal["turn", "toolRound", "child", "spawn", "defer"]
"""What is admitted. A process that is spawned is a "child" (lifetime, depth) and a "spawn" (rate)."""
Refused = Deny | Halt
"""Why something is not admitted: an action that does not happen, or the end of the run."""


class Counting(Books):
    """Admits in one step, so that of those who ask at once no more pass than may."""

    def refuses(self, kind: Kind, *, depth: int | None = None) -> Refused | None:
        """Return what `admit` would say now, and count nothing."""
        with self._file.reading() as file:
            return self._refusal(file, load(file, self._now()), kind, 1, depth)

    def admit(
        self,
        kinds: Kind | Mapping[Kind, int],
        n: int = 1,
        *,
        depth: int | None = None,
        excused: Collection[str] = (),
    ) -> Refused | None:
        """Count so many of a kind, or several kinds together; all of them or, when refused, none.

        Args:
            n: how many, where one kind is given.
            depth: of the node that would have the child; that of the process where it is not given.
            excused: rules that a person set aside for this action; it counts all the same.
        """
        asked: Mapping[Kind, int] = {kinds: n} if isinstance(kinds, str) else kinds
        with self._change() as (file, state):
            for kind, many in asked.items():
                refused = self._refusal(file, state, kind, many, depth)
                if refused is not None and refused.rule not in excused:
                    return refused
            for kind, many in asked.items():
                self._count(file, state, kind, many)
        return None

    def count(self, resource: str, n: int = 1) -> None:
        """Count units of a resource; its bound is looked at before the next action."""
        self.charge(Totals(resources={resource: max(0, n)}))

    def charge(self, more: Totals) -> None:
        """Add what was used without a reservation. Never refused: it has happened."""
        with self._change() as (file, state):
            state.add(more)
            save_resources(file, state, more.resources)

    def _refusal(
        self, file: sqlite3.Connection, state: State, kind: Kind, n: int, depth: int | None
    ) -> Refused | None:
        limits = self.limits
        match kind:
            case "turn":
                turns = state.turns + state.held.calls
                return _over("limits.maxTurns", "max_turns", turns, n, limits.max_turns)
            case "toolRound":
                rounds, most = state.tool_rounds, limits.max_tool_rounds
                return _over("limits.maxToolRounds", "max_tool_rounds", rounds, n, most)
            case "child":
                return self._too_many(state, n, self.depth if depth is None else depth)
            case "spawn":
                return self._too_fast(file, state.now, kind, n, self._spawn.rate_per_minute)
            case "defer":
                return self._too_fast(file, state.now, kind, n, self._defer.rate_per_minute)
        assert_never(kind)

    def _too_many(self, state: State, n: int, depth: int) -> Deny | None:
        most, deepest = self.limits.max_children, self.limits.max_depth
        if state.children + n > most:
            return Deny(
                rule="limits.maxChildren",
                reason=f"{state.children:,} of {most:,} children were admitted, over the whole run",
            )
        if depth >= deepest:
            return Deny(
                rule="limits.maxDepth",
                reason=f"depth {depth} of {deepest:,}: what stands so deep has no children",
            )
        return None

    def _too_fast(
        self,
        file: sqlite3.Connection,
        now: float,
        kind: Literal["spawn", "defer"],
        n: int,
        most: float,
    ) -> Deny | None:
        done = admitted(file, kind, now)
        if done + n <= most:
            return None
        return Deny(
            rule=f"{kind}.ratePerMinute",
            reason=f"{done}/{most} within the last 60 s: wait until some of them are older",
        )

    def _count(self, file: sqlite3.Connection, state: State, kind: Kind, n: int) -> None:
        match kind:
            case "turn":
                state.turns += n
            case "toolRound":
                state.tool_rounds += n
            case "child":
                state.children += n
            case "spawn" | "defer":
                write_admission(file, kind, state.now, n)
            case _:
                assert_never(kind)


def _over(rule: str, key: str, done: int, n: int, most: float) -> Halt | None:
    if done + n <= most:
        return None
    return Halt(
        rule=rule,
        reason=f"{done:,} of {most:,} are done",
        hint=raise_limit(key),
    )
