"""The ledger of a run family: every process of it reserves, reports and counts here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from executors.errors import ValidationError
from executors.gate.allowance import Drawn, Estimate, Full
from executors.gate.amounts import finite
from executors.gate.ledger import blocks
from executors.gate.ledger.amounts import DIMENSIONS, NOTHING, Amounts, usd_of
from executors.gate.ledger.blocks import Block
from executors.gate.ledger.bounds import Bound, dimension_of, whole
from executors.gate.ledger.counting import Counting
from executors.gate.ledger.lending import is_blind
from executors.gate.ledger.state import Spent, save_bound
from executors.secrets import scrub

__all__ = ["Ledger"]

_SECONDS: Final = 60.0
"""How long a block holds that is not renewed."""


class Ledger(Counting):
    """One SQLite file a run family. Each method is one transaction, and may be called in any thread.

    Args:
        path: the file; None for one in memory, of this object alone.
        caps: those of the run, where somebody gave them: the tighter of them and of `budget` holds.
            Where the file has others, the tighter ones hold, unless a person set those of the file.
        rebuild: adds up the audit of the family, for a file that is not there or damaged.
        depth: of this process below the root of the family.
        wait: seconds that another process's transaction is waited for.

    Raises:
        RunDirError: the file cannot be made where it should be.
        BudgetUnavailable: it is there and cannot be used. Each method raises that as well.
    """

    def draw(self, holder: str, need: Estimate) -> Block | Full:
        """Set a block aside: a tenth of what is left and 64 calls at most, the need at least.

        Args:
            holder: a name of its own for each object that uses blocks, or for each run over its
                sessions, of which there is one at a time.
        """
        block = Block(id=0, holder=holder, amounts=NOTHING, expires=0.0)
        block, full = self.refill(block, Spent(NOTHING), need)
        return block if full is None else full

    def refill(
        self,
        block: Block,
        spent: Spent,
        need: Estimate,
        *,
        in_flight: Amounts = NOTHING,
        blind: bool = False,
    ) -> tuple[Block, Full | None]:
        """Charge what was used of a block, and let it grow for the next call.

        Args:
            need: the worst case of that call.
            in_flight: what of the block is reserved for calls that are not settled yet.
            blind: a call without a price is among them.

        Returns:
            The block as it is now, and why it did not grow.
        """
        with self._change(block.holder) as (file, state):
            blocks.lapse(file, state)
            left = blocks.settle(file, state, block, spent, close=False)
            caps = self._bounds.effective(state.caps)
            free = self._lending.is_free(caps)
            block = replace(
                block,
                amounts=left,
                expires=state.now + _SECONDS,
                free=free,
                right=block.right and blind,
                alone=not state.company,
            )
            more = self._lending.growth(state, caps, need, left.less(in_flight), blind=blind)
            if not isinstance(more, Amounts):
                blocks.write(file, block)
                return block, more
            right = block.right or (is_blind(need) and not free)
            return blocks.grow(file, replace(block, right=right), more), None

    def report(self, block: Block, drawn: Drawn | Spent, *, close: bool = False) -> Block:
        """Charge what was used of a block since the last report; return what it holds now.

        Args:
            close: the rest goes back, and the block is no more.
        """
        spent = drawn if isinstance(drawn, Spent) else Spent(Amounts.of(drawn))
        with self._change(block.holder) as (file, state):
            left = blocks.settle(file, state, block, spent, close=close)
            block = replace(
                block, amounts=left, expires=state.now + _SECONDS, alone=not state.company
            )
            if not close:
                blocks.write(file, block)
            return block

    def exempt(self, holder: str, estimate: Estimate) -> Block:
        """Raise the bounds by the worst case of one action that a person allowed, and set it aside.

        Once its block is closed, the bounds are higher by what it used, and no more: whatever
        halted the run before halts it again.
        """
        amounts = Amounts.of(estimate)
        with self._change(holder) as (file, state):
            for name, by in zip(DIMENSIONS, amounts, strict=True):
                bound = state.caps[name]._replace(exempt=state.caps[name].exempt + by)
                state.caps[name] = bound
                save_bound(file, name, bound)
            block = Block(
                id=0, holder=holder, amounts=NOTHING, expires=state.now + _SECONDS, exempt=True
            )
            return blocks.grow(file, block, amounts)

    def reap(self) -> int:
        """Count the blocks as used that were not renewed in time; return how many. `draw` does too."""
        with self._change() as (file, state):
            return blocks.lapse(file, state)

    def reported(self, holder: str) -> Drawn:
        """Return what a holder reported in its life; nothing where this file does not know it."""
        with self._file.reading() as file:
            found = blocks.reported(file, holder)
        return Drawn() if found is None else found.drawn

    def lapsed(self) -> Mapping[str, Drawn]:
        """Return what each holder that did not renew counts as having used since its last report."""
        with self._file.reading() as file:
            return {holder: held.drawn for holder, held in blocks.lapsed(file).items()}

    def reconcile(self, holder: str, drawn: Drawn, *, counted: Callable[[], Drawn] = Drawn) -> None:
        """Settle for a holder that is gone; what it held beyond that is free again.

        Args:
            drawn: all that it drew in its life, as its journal shows, lost calls at their worst.
                Where that is less than what it reported itself, its reports count.
            counted: what of it the totals hold already, asked where this file does not know the holder:
                it may have been made again from an audit.
        """
        with self._change(holder) as (file, state):
            blocks.reconcile(file, state, holder, Amounts.of(drawn), lambda: Amounts.of(counted()))

    def top_up(self, name: str, cap: object) -> Decimal | None:
        """Set a bound for the whole family, on behalf of a person; return the one before.

        It counts from now on, whatever the configuration says, and may be lower than before.

        Args:
            name: a dimension ("usd", "tokens", "calls", "resource.<name>") or its rule.
            cap: a finite number >= 0, in USD for "usd".

        Raises:
            ValidationError: it is none of that; nothing was changed.
        """
        dimension = dimension_of(name)
        if dimension is None:
            raise ValidationError(
                f"{name!r} is not a bound that can be raised",
                hint="choose usd, tokens, calls or resource.NAME",
            )
        amount = finite(cap)
        if amount is None or amount < 0:
            raise ValidationError(
                f"{cap!r} is no bound of {dimension}", hint="give a finite number >= 0"
            )
        with self._change() as (file, state):
            old = self._bounds.effective(state.caps).get(dimension)
            units = whole(dimension, amount)
            before = state.caps.get(dimension)
            warned = before is not None and before.warned
            save_bound(file, dimension, Bound(units, human=True, exempt=0, warned=warned))
        return None if old is None else usd_of(old) if dimension == "usd" else Decimal(old)

    def terminate(self, reason: str) -> None:
        """End the run family for good. Calls in flight may end; the first reason stays."""
        with self._change() as (_, state):
            state.terminated = state.terminated or scrub(reason) or "somebody ended the run"
