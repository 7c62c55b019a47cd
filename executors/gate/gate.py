"""The gate: the one place that every action of a run family passes.

A check asks in this order, and the first word that settles it counts:

1. bounds that are reached: the end of the run, the budget, turns and rounds of tools
2. the rules, in the order of `rules.order`, with the limits at their place
3. a person, for what a rule asks about and for bounds that are reached
4. room: what is allowed is counted, and its worst case set aside

Nothing is counted before it is allowed. Several checks of one gate may run at once; people hear one
question at a time. A check never raises: what goes wrong inside it halts the run.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from math import isinf
from pathlib import Path
from secrets import randbits
from typing import Final, Self, TypeVar

from executors.boundary import Raised, Returned, attempt, attempt_now, described
from executors.clock import Clock, SystemClock
from executors.errors import BudgetUnavailable, DiskFault, Halted, OverBudget
from executors.gate.actions import plain
from executors.gate.allowance import Caps, Estimate
from executors.gate.audit.audit import Audit, RunIds
from executors.gate.audit.rebuilding import totals
from executors.gate.audit.redactor import Redactor
from executors.gate.config.audit import AUTO
from executors.gate.config.config import GateConfig
from executors.gate.config.load import load_config
from executors.gate.course.admitting import Admitting
from executors.gate.course.booking import Booking
from executors.gate.course.cases import Case
from executors.gate.course.consulting import Consulting
from executors.gate.course.deciding import Deciding
from executors.gate.course.executed import Executed
from executors.gate.course.judging import Judging
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.files import AUDIT, LEDGER, book
from executors.gate.ledger.allowance import LedgerAllowance
from executors.gate.ledger.books import SoftWarning
from executors.gate.ledger.ledger import Ledger
from executors.gate.people.annotations import Annotations, Malformed, plain_annotation
from executors.gate.people.channel import Channel
from executors.gate.people.human import Human
from executors.gate.people.standing import Pace, Standing
from executors.gate.results import Result, plain_result
from executors.gate.rules.order import Rules
from executors.replies import JsonValue

__all__ = ["Gate"]

T = TypeVar("T")

_AIDS: Final = 2**32


class Gate:
    """Decides about actions, and keeps the books of a run family.

    Args:
        config: a configuration, its sections as a mapping, or the file that holds them.
        human: who is asked; None denies what a person would have to decide.
        directory: where the ledger and the audit of the family stand; None keeps both in memory,
            of this object alone, unless the configuration or the environment names files.
        run: the ids of the run in its family; who gives none gets those that the environment says.
        caps: bounds of the run itself, where somebody gave them: the tighter ones hold.

    Raises:
        ConfigError: a configuration that cannot be one.
        RunDirError, BudgetUnavailable: the ledger cannot be used.
        DiskFault: the audit cannot be written.

    Attributes:
        warnings: what whoever runs this should know, in the order in which it came up.
    """

    def __init__(
        self,
        config: GateConfig | Mapping[str, object] | Path,
        *,
        human: Human | None = None,
        clock: Clock | None = None,
        directory: Path | None = None,
        run: RunIds | None = None,
        caps: Caps | None = None,
    ) -> None:
        self.config = config if isinstance(config, GateConfig) else load_config(config)
        self.warnings: list[str] = []
        self._clock = clock or SystemClock()
        self._started = self._clock.monotonic()
        self._pace = Pace()
        self._first, self._number = randbits(32), count()
        self._redactor = Redactor(self.config.secrets)
        audit, ledger = _books(self.config, directory)
        self.audit = Audit(audit, run=run, clock=self._clock, redactor=self._redactor)
        self.ledger = Ledger(
            ledger,
            budget=self.config.budget,
            limits=self.config.limits,
            spawn=self.config.spawn,
            defer=self.config.defer,
            clock=self._clock,
            caps=caps,
            depth=self.audit.run.depth,
            rebuild=None if audit is None else partial(totals, audit),
        )
        self.allowance = LedgerAllowance(
            self.ledger,
            holder=None if run is None else run.run,
            seconds=Caps().seconds if caps is None else caps.seconds,
            appeal=self._appealed,
            on_soft=self._nearly_reached,
        )
        self._assemble(human)

    def _assemble(self, human: Human | None) -> None:
        section = self.config.human
        self._booking = Booking(self.audit)
        self._annotations = Annotations(section.reversible, section.reversible_escalation)
        self._judging = Judging(Rules(self.config), self.allowance)
        self._admitting = Admitting(self.ledger, self.allowance, self._booking, self.audit)
        self._channel = Channel(human, section, warn=self.warnings.append)
        self._consulting = Consulting(
            self._channel,
            self.ledger,
            self._booking,
            self._annotations,
            topups=section.topups,
            standing=self.context,
            redact=self.redact,
        )
        self._deciding = Deciding(
            self._judging, self._admitting, self._booking, self._channel, self._consulting
        )

    @classmethod
    def default(cls, *, human: Human | None = None, directory: Path | None = None) -> Self:
        """Return a gate that work may be run with which nobody has written rules for.

        Its bounds are finite: those of a run. Shell commands are judged by what they destroy.
        """
        return cls({"bash": {"classify": True}}, human=human, directory=directory)

    # ---------------------------------------------------------------- deciding

    async def check(
        self, action: object, *, estimate: Estimate | None = None, depth: int | None = None
    ) -> Settled:
        """Decide about an action. Never raises.

        Args:
            action: a mapping with `type` and its fields, flat or under `args`. Whatever else it is,
                it is decided about.
            estimate: its worst case, set aside with the Allow until `record` or `release`.
            depth: of the node that acts; that of the process where it is not given.

        Returns:
            Allow, Deny (of this action alone), or Halt (the run has to stop). Its `aid` joins what
            comes of it in the audit.
        """
        aid = self._aid()
        try:
            got = await attempt(self._checked, action, aid, estimate, depth)
        except Halted as halted:
            return _failed(halted, aid)
        match got:
            case Returned(value=(Allow() | Deny() | Halt()) as decision):
                return replace(decision, aid=aid)
            case Raised(error=error):
                return Halt(
                    rule="gate.error", reason=f"the gate failed: {described(error)}", aid=aid
                )
            case _:
                return Halt(rule="gate.error", reason="the gate did not decide", aid=aid)

    async def _checked(
        self, given: object, aid: str, estimate: Estimate | None, depth: int | None
    ) -> Settled:
        case = Case(action=plain(given), aid=aid, estimate=estimate, depth=depth)
        return await self._deciding.settled(case)

    def allows(self, action: object) -> bool:
        """Return whether an action could be allowed, alone or by a person's word; nobody is asked.

        Args:
            action: as for `check`, or the name of a tool.
        """
        given = {"type": action} if isinstance(action, str) else action
        try:
            got = attempt_now(lambda: self._judging.allows(plain(given)))
        except Halted:
            return False
        return isinstance(got, Returned) and got.value is True

    async def run(
        self,
        action: object,
        execute: Callable[[], Awaitable[T]],
        *,
        estimate: Estimate | None = None,
        report: Callable[[T], object] | None = None,
    ) -> Executed[T] | Deny | Halt:
        """Check an action, let it happen where it is allowed, and record what it took.

        Args:
            execute: does it; called on this loop.
            report: says what it took, as for `record`; without one it took nothing.

        Raises:
            Exception: what the action raised; it is recorded, and charged as estimated.
            Halted: the books could not be kept.
        """
        decision = await self.check(action, estimate=estimate)
        if not isinstance(decision, Allow):
            return decision
        try:
            value = await execute()
            took = Result() if report is None else plain_result(report(value))
        except BaseException as error:
            failed = Result(error=described(error))
            if self._admitting.charge_whole(decision.aid):
                self._booking.recorded(plain(action), failed, decision.aid, held=True)
            else:
                self.record(action, failed, aid=decision.aid)
            raise
        self.record(action, took, aid=decision.aid)
        return Executed(value=value, aid=decision.aid)

    # ---------------------------------------------------------------- books

    def record(self, action: object, result: object, *, aid: str | None = None) -> None:
        """Hear what an action took.

        Args:
            result: a `Result`, or a mapping as `plain_result` reads it.
            aid: of its Allow; None where it was never checked, and counts now.

        Raises:
            DiskFault, BudgetUnavailable: the audit or the ledger cannot be written.
        """
        told, took = plain(action), plain_result(result)
        held = self._admitting.record(told, took, aid)
        self._pace.add(took.usd)
        self._booking.recorded(told, took, aid, held=held)
        for soft in self.ledger.take_warnings():
            self._nearly_reached(soft)

    def release(self, aid: str) -> None:
        """Hear that an allowed action did not happen after all: what was set aside is free again."""
        self._admitting.release(aid)

    def raise_cap(self, dimension: str, cap: object) -> None:
        """Set a bound of the budget for the whole family, higher or lower, on behalf of a person.

        Args:
            dimension: "usd", "tokens", "calls", "resource.<name>", or the name of its rule.
            cap: a finite number >= 0.

        Raises:
            ValidationError: it is none of that; nothing was changed.
        """
        old = self.ledger.top_up(dimension, cap)
        self._booking.topped_up(dimension, old, cap)

    def terminate(self, reason: str = "") -> None:
        """End the run family for good: every check halts from now on, and nobody is asked."""
        self.ledger.terminate(reason)
        self._booking.terminated(reason)

    def annotate(self, fact: object) -> None:
        """Note a fact: a mapping with `verdict`, `reason`, `where`, `meta`, and `surface`.

        What is to surface rides with the next question to a person. No decision changes by it; what
        is no fact is logged as that.
        """
        read = plain_annotation(self.redact(fact))
        self._booking.annotated(read)
        if not isinstance(read, Malformed):
            self._annotations.add(read)

    def context(self) -> Standing:
        """Return where the run stands.

        Raises:
            BudgetUnavailable: the ledger cannot be read.
        """
        totals, caps = self.allowance.totals(), self.ledger.caps()
        tokens = caps.get("tokens")
        turns = self.config.limits.max_turns
        return Standing(
            usd=totals.usd,
            max_usd=caps.get("usd"),
            tokens=totals.tokens,
            max_tokens=None if tokens is None else int(tokens),
            turns=totals.turns,
            max_turns=None if isinf(turns) else int(turns),
            seconds=self._clock.monotonic() - self._started,
            usd_each=self._pace.each,
            usd_lately=self._pace.lately,
        )

    def redact(self, value: object) -> JsonValue:
        """Return a value as it may be written down: plain, bounded, and without secrets."""
        return self._redactor.redact(value)

    def close(self) -> None:
        """Report what was used, and close the files."""
        self.allowance.close()
        self.audit.close()
        self.ledger.close()

    async def _appealed(self, halted: Halted, estimate: Estimate) -> bool:
        """Ask a person where a call of a model found no room; True where it may try again."""
        if not isinstance(
            halted, OverBudget
        ):  # nobody can give more of the time, or mend the books
            return False
        case = Case(action=plain({"type": "llm"}), aid=self._aid(), estimate=estimate)
        halt = _failed(halted, case.aid)
        if not await self._consulting.appeal(case, halt):
            return False
        if case.excused:
            self._booking.exempted(case.aid, estimate)
            self.allowance.exempt_next(estimate)
        return True

    def _nearly_reached(self, soft: SoftWarning) -> None:
        self.warnings.append(f"{soft.spent} of {soft.cap} are used ({soft.dimension})")
        self._booking.nearly_reached(soft.dimension, soft.spent, soft.cap, soft.ratio)

    def _aid(self) -> str:
        return f"{(self._first + next(self._number)) % _AIDS:08x}"


def _books(config: GateConfig, directory: Path | None) -> tuple[Path | None, Path | None]:
    """Return the files of the audit and of the ledger; None for those that are kept in memory."""
    named = config.audit.path
    audit = None
    if named is not None:
        named = None if named == AUTO else named
        audit = book(AUDIT, configured=named, environment=os.environ, directory=directory)
    shared = config.budget.shared_file
    ledger = book(LEDGER, configured=shared, environment=os.environ, directory=directory)
    return audit, ledger


def _failed(halted: Halted, aid: str) -> Halt:
    """Say that nothing is let through while the books cannot be kept."""
    match halted:
        case DiskFault():
            rule = "audit"
        case BudgetUnavailable():
            rule = "budget.unavailable"
        case OverBudget(rule=rule, reason=reason):
            return Halt(rule=rule, reason=reason, hint=halted.hint, aid=aid)
        case _:
            rule = halted.bound
    where = f" ({halted.where})" if halted.where else ""
    return Halt(rule=rule, reason=f"{halted.what}{where}", hint=halted.hint, aid=aid)
