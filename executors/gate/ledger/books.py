"""The open books of a run family: one look or one change at a time, under the bounds that hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from executors.clock import Clock, SystemClock
from executors.gate.allowance import Caps
from executors.gate.config.budget import BudgetSection
from executors.gate.config.limits import LimitsSection
from executors.gate.config.spawning import DeferSection, SpawnSection
from executors.gate.decisions import Halt
from executors.gate.ledger.amounts import shown, usd_of
from executors.gate.ledger.bounds import Bound, Bounds, whole
from executors.gate.ledger.file import LedgerFile
from executors.gate.ledger.halts import Stop, stops
from executors.gate.ledger.lending import Lending
from executors.gate.ledger.state import State, load, save, save_bound, save_resources
from executors.gate.ledger.totals import Totals

__all__ = ["Books", "SoftWarning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftWarning:
    """A bound is nearly reached. It is said once a family and bound, and refuses nothing."""

    dimension: str
    """ "usd", "tokens", "calls", "resource.<name>"."""
    spent: str
    """What was used, for people."""
    cap: str
    ratio: float


class Books:
    """What the parts of a ledger share. See `Ledger` for the arguments."""

    def __init__(
        self,
        path: Path | None,
        *,
        budget: BudgetSection | None = None,
        limits: LimitsSection | None = None,
        spawn: SpawnSection | None = None,
        defer: DeferSection | None = None,
        caps: Caps | None = None,
        clock: Clock | None = None,
        rebuild: Callable[[], Totals] | None = None,
        depth: int = 0,
        wait: float = 5.0,
    ) -> None:
        self.budget = budget or BudgetSection()
        self.limits = limits or LimitsSection()
        self._spawn = spawn or SpawnSection()
        self._defer = defer or DeferSection()
        self.clock = clock or SystemClock()
        self.depth = depth
        self._bounds = Bounds(self.budget, caps)
        self._lending = Lending(self.budget, self.limits, prices_matter=self._bounds.prices_matter)
        self._soft: list[SoftWarning] = []
        fill = None if rebuild is None else partial(_fill, rebuild=rebuild)
        self._file = LedgerFile(path, wait=wait, fill=fill)
        try:
            self._note_bounds()
        except BaseException:
            self._file.close()
            raise

    @property
    def path(self) -> Path | None:
        """The file; None where it is in memory."""
        return self._file.path

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- looking

    def totals(self) -> Totals:
        """Return what the family used, by what was reported until now."""
        return self._look().totals()

    def caps(self) -> Mapping[str, Decimal | None]:
        """Return the bounds that hold, by dimension: "usd", "tokens", "calls", "resource.<name>".

        None is no bound. What a person allowed beyond a bound is counted in.
        """
        held = self._bounds.effective(self._look().caps)
        return {
            name: None if cap is None else usd_of(cap) if name == "usd" else Decimal(cap)
            for name, cap in held.items()
        }

    def stop(self, *, skip: Collection[str] = (), more: Totals | None = None) -> Stop | None:
        """Return why nothing may happen any more, with what is known of it; see `halts`."""
        state = self._look()
        if more is not None:
            state.add(more)
        held = self._bounds.effective(state.caps)
        found = stops(state, held, self.budget, self.limits)
        return next((stop for stop in found if stop.rule not in skip), None)

    def halts(self, *, skip: Collection[str] = (), more: Totals | None = None) -> Halt | None:
        """Return why nothing may happen any more, by the first reason that counts.

        Args:
            skip: rules that a person has just excused for this action.
            more: what was used and not reported yet.
        """
        stop = self.stop(skip=skip, more=more)
        return None if stop is None else stop.halt

    @property
    def terminated(self) -> str | None:
        """Why somebody ended the run for good; None while nobody did."""
        return self._look().terminated

    def take_warnings(self) -> tuple[SoftWarning, ...]:
        """Return the warnings that changes of this object gave rise to, each once."""
        taken = tuple(self._soft)
        del self._soft[: len(taken)]
        return taken

    # ---------------------------------------------------------------- changing

    def _look(self) -> State:
        with self._file.reading() as file:
            return load(file, self._now())

    def _now(self) -> float:
        return self.clock.now().timestamp()

    @contextmanager
    def _change(self, holder: str = "") -> Generator[tuple[sqlite3.Connection, State]]:
        with self._file.transaction() as file:
            state = load(file, self._now(), holder)
            yield file, state
            save(file, state)
            warned = self._warned(file, state)
        self._soft += warned

    def _warned(self, file: sqlite3.Connection, state: State) -> list[SoftWarning]:
        ratio = self.budget.soft_ratio
        if ratio is None:
            return []
        found: list[SoftWarning] = []
        for name, cap in self._bounds.effective(state.caps).items():
            bound = state.caps.get(name)
            used = state.used_of(name)
            if cap is None or bound is None or bound.warned or used < cap * ratio:
                continue
            save_bound(file, name, bound._replace(warned=True))
            found.append(
                SoftWarning(
                    dimension=name, spent=shown(name, used), cap=shown(name, cap), ratio=ratio
                )
            )
        return found

    def _note_bounds(self) -> None:
        """Write down the bounds that nobody in the family has written yet."""
        own = self._bounds.configured
        if own.keys() <= self._look().caps.keys():
            return
        with self._change() as (file, state):
            for name, cap in own.items():
                if name not in state.caps:
                    state.caps[name] = Bound(cap, human=False, exempt=0, warned=False)
                    save_bound(file, name, state.caps[name])


def _fill(file: sqlite3.Connection, rebuild: Callable[[], Totals]) -> None:
    """Write totals that were added up from the audit into a new file."""
    totals = rebuild()
    state = load(file, 0.0)
    state.add(totals)
    save_resources(file, state, totals.resources)
    save(file, state)
    for name, cap in totals.caps.items():
        save_bound(file, name, Bound(whole(name, cap), human=True, exempt=0, warned=False))
