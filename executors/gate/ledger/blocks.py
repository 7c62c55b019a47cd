"""Blocks: what one process may use without asking again. Set aside as a whole, used up in memory.

A block that is not renewed in time lapses: its holder may have died after spending it all. So all
of it counts as used until somebody knows better: the holder itself, when it reports after all, or
whoever settles for it with what its journal shows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from executors.gate.ledger.amounts import DIMENSIONS, NOTHING, Amounts, usd_of
from executors.gate.ledger.state import Spent, State, save_bound

__all__ = ["Block", "grow", "lapse", "lapsed", "reconcile", "reported", "settle", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a holder may use from its last report on, what is in flight included."""

    id: int
    holder: str
    amounts: Amounts
    expires: float
    """Seconds since 1970 by the wall clock."""
    free: bool = True
    """Calls whose price nobody knows need no right: no bound of USD is meant for them."""
    right: bool = False
    """Its holder may make one such call at a time; nobody else may meanwhile."""
    alone: bool = True
    """Nobody else was here of late, when this one was written last."""
    exempt: bool = False
    """A person allowed it beyond the bounds, for one action."""

    @property
    def calls(self) -> int:
        """Logical calls."""
        return self.amounts.calls

    @property
    def tokens(self) -> int:
        """Tokens of all tiers."""
        return self.amounts.tokens

    @property
    def usd(self) -> Decimal:
        """USD."""
        return usd_of(self.amounts.usd)


def grow(file: sqlite3.Connection, block: Block, more: Amounts) -> Block:
    """Write what a block holds from now on; return it with its number, where it had none."""
    block = replace(block, amounts=block.amounts.plus(more))
    if write(file, block):
        return block
    cursor = file.execute(
        "INSERT INTO blocks (holder, calls, tokens, usd, unpriced, exempt, lapsed, expires)"
        " VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
        (block.holder, *block.amounts, block.right, block.exempt, block.expires),
    )
    return replace(block, id=cursor.lastrowid or 0)


def write(file: sqlite3.Connection, block: Block) -> bool:
    """Write what a block holds now; False where there is no such block any more."""
    cursor = file.execute(
        "UPDATE blocks SET calls = ?, tokens = ?, usd = ?, unpriced = ?, lapsed = 0, expires = ?"
        " WHERE id = ? AND holder = ?",
        (*block.amounts, block.right, block.expires, block.id, block.holder),
    )
    return cursor.rowcount > 0


def settle(
    file: sqlite3.Connection, state: State, block: Block, spent: Spent, *, close: bool
) -> Amounts:
    """Charge what was used of a block, and return what it still holds: nothing once it is closed.

    What a block that nobody knows any more was used for is charged all the same.
    """
    row = file.execute(
        "SELECT calls, tokens, usd, lapsed, exempt FROM blocks WHERE id = ? AND holder = ?",
        (block.id, block.holder),
    ).fetchone()
    held, was_lapsed, exempt = (
        (NOTHING, False, False) if row is None else (Amounts(*row[:3]), bool(row[3]), bool(row[4]))
    )
    if was_lapsed:
        _unlapse(state, held)
    left = held.over(spent.amounts)
    state.held = state.held.less(held)
    _charge(file, state, block.holder, spent)
    if close:
        if exempt:
            _lower(file, state, left)
        file.execute("DELETE FROM blocks WHERE id = ?", (block.id,))
        return NOTHING
    state.held = state.held.plus(left)
    return left


def lapse(file: sqlite3.Connection, state: State) -> int:
    """Count the blocks as used that were not renewed in time; return how many."""
    rows = file.execute(
        "SELECT id, calls, tokens, usd FROM blocks WHERE expires <= ? AND NOT lapsed", (state.now,)
    ).fetchall()
    for number, *amounts in rows:
        held = Amounts(*amounts)
        state.held = state.held.less(held)
        state.used = state.used.plus(held)
        state.turns += held.calls
        file.execute("UPDATE blocks SET lapsed = 1 WHERE id = ?", (number,))
    return len(rows)


def lapsed(file: sqlite3.Connection) -> dict[str, Amounts]:
    """Return what each holder that did not renew may have used since its last report."""
    found: dict[str, Amounts] = {}
    for holder, *amounts in file.execute(
        "SELECT holder, calls, tokens, usd FROM blocks WHERE lapsed"
    ):
        found[holder] = found.get(holder, NOTHING).plus(Amounts(*amounts))
    return found


def reconcile(
    file: sqlite3.Connection,
    state: State,
    holder: str,
    total: Amounts,
    counted: Callable[[], Amounts],
) -> None:
    """Settle for a holder that is gone, by all that it drew in its life; close its blocks.

    Args:
        counted: what of it the sums hold already, of a holder that the file does not know.
    """
    for number, lapsed_, *amounts in file.execute(
        "SELECT id, lapsed, calls, tokens, usd FROM blocks WHERE holder = ?", (holder,)
    ).fetchall():
        held = Amounts(*amounts)
        if lapsed_:
            _unlapse(state, held)
        state.held = state.held.less(held)
        file.execute("DELETE FROM blocks WHERE id = ?", (number,))
    told = reported(file, holder)
    if told is None:
        told = counted()
        _note(file, state, holder, told)
    _charge(file, state, holder, Spent(total.over(told)))


def reported(file: sqlite3.Connection, holder: str) -> Amounts | None:
    """Return what a holder reported in its life; None where the file does not know it."""
    row = file.execute(
        "SELECT calls, tokens, usd FROM holders WHERE holder = ?", (holder,)
    ).fetchone()
    return None if row is None else Amounts(*row)


def _unlapse(state: State, held: Amounts) -> None:
    state.used = state.used.less(held)
    state.turns -= held.calls
    state.held = state.held.plus(held)


def _charge(file: sqlite3.Connection, state: State, holder: str, spent: Spent) -> None:
    state.spend(spent)
    _note(file, state, holder, spent.amounts)


def _note(file: sqlite3.Connection, state: State, holder: str, amounts: Amounts) -> None:
    """Keep what a holder reported, apart from the sums."""
    file.execute(
        "INSERT INTO holders VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (holder) DO UPDATE SET"
        " calls = calls + ?2, tokens = tokens + ?3, usd = usd + ?4, seen = ?5",
        (holder, *amounts, state.now),
    )


def _lower(file: sqlite3.Connection, state: State, by: Amounts) -> None:
    """Take back what a person allowed and nobody used."""
    for name, amount in zip(DIMENSIONS, by, strict=True):
        bound = state.caps.get(name)
        if bound is not None and amount:
            bound = bound._replace(exempt=max(0, bound.exempt - amount))
            state.caps[name] = bound
            save_bound(file, name, bound)
