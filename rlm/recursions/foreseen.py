"""What a recursion would take: its tree as far as it is decided, and the bounds of the rest. Values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias

from executors.messages import CallRole
from planner.complexity import Complexity
from planner.routes import Route
from rlm.forecasts.forecast import Bound, Range

__all__ = ["NOTHING", "ONE", "PlannedPart", "RecursionPlan", "RoleLoad", "Shape", "Span", "spanned"]

Shape: TypeAlias = Literal["scan", "terms", "worker", "fan-out", "partition"]
"""How a task is done: every record judged, or matched by code; by one worker, which may hand parts on;
by parts that are planned first; or by parts of a corpus."""


class _Printer(Protocol):
    """Of IPython, as far as it is needed."""

    def text(self, text: str) -> object:
        """Print text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the least to the most; no most where a model decides, and only a bound of the run ends it."""

    low: int = 0
    high: int | None = 0

    def __add__(self, other: Span) -> Span:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Span(low=self.low + other.low, high=high)

    def __mul__(self, times: int) -> Span:
        return Span(low=self.low * times, high=None if self.high is None else self.high * times)


NOTHING: Final = Span()
ONE: Final = Span(low=1, high=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLoad:
    """What the calls of one role come to."""

    role: CallRole
    model: str
    calls: Span
    input: Span
    """Tokens of the prompts, as the run counts them."""
    output: Span
    """Tokens of the answers: one each, to as many as they may have."""
    usd: Range[Decimal] | None
    """None where no price is known."""
    open_usd: bool = False
    """The most is not known: the calls have no bound but those of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """A part of the task that is decided before any work."""

    name: str
    records: int | None
    """Distinct texts that are its business; None for a part of the task itself."""
    tokens: int
    """Estimated, of what its worker is shown, or of all that its judge is."""
    calls: Span


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RecursionPlan:
    """What a recursion would take. As text it is what `rlm plan` prints."""

    task: str
    complexity: Complexity
    shape: Shape
    why: str
    """Of the shape."""
    route: Route | None
    """How the corpus is read; None without one."""
    records: int | None = None
    distinct: int | None = None
    exact: bool
    """The tree is decided before any work; else a model makes it, within the bounds."""
    parts: tuple[PlannedPart, ...] = ()
    nodes: Span
    loads: tuple[RoleLoad, ...] = ()
    bounds: tuple[Bound, ...] = ()
    max_depth: int
    max_nodes: int
    rounds: int
    ends: tuple[str, ...] = ()
    """What is sure to leave it incomplete, as it is asked for."""
    notes: tuple[str, ...] = ()

    @property
    def calls(self) -> Span:
        """Of all roles."""
        return spanned([load.calls for load in self.loads])

    @property
    def tokens(self) -> Span:
        """Of all prompts and answers."""
        return spanned([load.input + load.output for load in self.loads])

    @property
    def usd(self) -> Range[Decimal] | None:
        """Of all roles; None where the price of one is not known."""
        priced = [load.usd for load in self.loads if load.usd is not None]
        if len(priced) < len(self.loads):
            return None
        low, high = sum(one.low for one in priced), sum(one.high for one in priced)
        return Range(low=Decimal(low), high=Decimal(high))

    @property
    def halted_by(self) -> Bound | None:
        """A bound that is sure to end it; None where none is."""
        return next((bound for bound in self.bounds if bound.standing == "halts"), None)

    def __str__(self) -> str:
        from rlm.render.lines import as_text  # it lies above, and reads plans
        from rlm.render.tree_plan import plan_lines

        return as_text(plan_lines(self)).rstrip("\n")

    def __repr__(self) -> str:
        most = "…" if self.calls.high is None else f"{self.calls.high:,}"
        return f"RecursionPlan({self.shape}, {self.calls.low:,} to {most} calls)"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """Show the text in a notebook."""
        printer.text(repr(self) if cycle else str(self))


def spanned(spans: list[Span]) -> Span:
    """Return all of them together."""
    return sum(spans, NOTHING)
