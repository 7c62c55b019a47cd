"""What a count would take: calls, tokens, USD and seconds, before any of it is spent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from math import ceil, inf
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from executors.endpoint.buckets import Limits
from executors.gate.allowance import Caps
from executors.journal.records import Spent
from executors.models.prices import Price, cost_of, worst_cost
from executors.usage import Usage

__all__ = [
    "Bound",
    "CountPlan",
    "Load",
    "Pacing",
    "Range",
    "Standing",
    "bound_of",
    "bounds_for",
    "seconds_of",
    "total",
    "usd_of",
]

N = TypeVar("N", int, float, Decimal)
Standing: TypeAlias = Literal["within", "may halt", "halts", "unknown"]
"""Of a bound: it is not reached; only the upper end would reach it; the lower end does; no price is
known, so that it binds nothing."""

_MINUTE = 60.0


class _Printer(Protocol):
    """Of IPython, as far as it is needed."""

    def text(self, text: str) -> object:
        """Print text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Range(Generic[N]):
    """From the least to the most."""

    low: N
    high: N


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one pass asks where nothing goes wrong."""

    windows: int = 0
    calls: int = 0
    """Requests that would leave."""
    filed: int = 0
    """Answered by the journal of the run, for nothing."""
    shared: int = 0
    """Identical to another one of the count, so answered together with it."""
    refused: int = 0
    """Items that are too long for the model or its limits, also alone: they never leave."""
    prompt: int = 0
    """Tokens of all prompts, as the run counts them."""
    shortest: int = 0
    """Tokens of the shortest replies that answer for each item."""
    longest: int = 0
    """Tokens that the replies may have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """What decides how long calls take."""

    cap: int
    """Calls in flight."""
    latency: float
    """Seconds a call: a guess."""
    limits: Limits = field(default_factory=Limits)

    def seconds(self, load: Load, tokens: int) -> float:
        """Return the seconds that a pass takes with so many tokens in all."""
        waves = ceil(load.calls / self.cap) * self.latency
        requests = 0.0 if self.limits.rpm is None else load.calls / self.limits.rpm * _MINUTE
        reading = 0.0 if self.limits.tpm is None else tokens / self.limits.tpm * _MINUTE
        return max(waves, requests, reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound of the run, against what the count would take."""

    name: Literal["calls", "tokens", "usd", "seconds"]
    limit: Decimal
    standing: Standing
    share: float | None
    """Of what is left under the bound, how much the lower end takes; None: nothing is left, or it is
    not known what it takes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountPlan:
    """What a count would take if nothing went wrong.

    Calls and prompt tokens are those of the requests themselves, which were built for this. A reply
    that is cut, refused or cannot be read, and a call that fails, cost further calls. As text it is
    what `--dry-run` prints.
    """

    question: str
    source: str
    records: int
    empty: int
    identical: int
    """Records that repeat the text of an earlier one: they share its verdict."""
    distinct: int
    """Texts that need a verdict."""
    judge: str
    asks: bool = False
    """A model is asked; where none is, all that follows is nothing."""
    restored: int = 0
    """Verdicts that the run has already, over all passes."""
    passes: int = 1
    window: int = 1
    """Records of a window at most."""
    concurrency: int = 1
    load: Load = field(default_factory=Load)
    """What is asked, all passes together."""
    usd: Range[Decimal] | None = None
    """None: no price is known."""
    seconds: Range[float] | None = None
    """None where no model is asked: nothing is known of the time."""
    latency: float
    """Seconds a call, as guessed for `seconds`."""
    bounds: tuple[Bound, ...] = ()
    spent: Spent = field(default_factory=Spent)
    """What the run drew already, which its bounds count too."""
    run: str | None = None
    """The run that the records were read into, or whose verdicts were counted in; None: none."""

    def __str__(self) -> str:
        from rlm.render.forecast import forecast_lines  # it lies above, and reads plans
        from rlm.render.lines import as_text

        return as_text(forecast_lines(self)).rstrip("\n")

    def __repr__(self) -> str:
        usd = "USD unknown" if self.usd is None else f"{self.usd.low} to {self.usd.high} USD"
        cost = f"{self.calls:,} calls, {usd}" if self.asks else "no model is asked"
        return f"CountPlan({self.records:,} records, {cost})"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """Show the text in a notebook."""
        printer.text(repr(self) if cycle else str(self))

    @property
    def calls(self) -> int:
        """Calls that would be paid."""
        return self.load.calls

    @property
    def input_tokens(self) -> int:
        """Of all prompts, as the run counts them."""
        return self.load.prompt

    @property
    def output_tokens(self) -> Range[int]:
        """From the shortest replies that answer to the longest that are allowed."""
        return Range(low=self.load.shortest, high=self.load.longest)

    @property
    def halted_by(self) -> Bound | None:
        """The bound that would end the count first; None where none is sure to."""
        sure = [bound for bound in self.bounds if bound.standing == "halts"]
        return max(
            sure, key=lambda bound: inf if bound.share is None else bound.share, default=None
        )


def total(loads: Sequence[Load]) -> Load:
    """Return all passes together."""
    return Load(**{f.name: sum(getattr(load, f.name) for load in loads) for f in fields(Load)})


def seconds_of(loads: Sequence[Load], pacing: Pacing) -> Range[float]:
    """Return how long the passes take, one after another."""
    return Range(
        low=sum(pacing.seconds(load, load.prompt + load.shortest) for load in loads),
        high=sum(pacing.seconds(load, load.prompt + load.longest) for load in loads),
    )


def usd_of(load: Load, price: Price | None) -> Range[Decimal] | None:
    """Return what it costs, from the shortest replies at no cache's discount to the worst case."""
    if price is None:
        return None
    least = cost_of(Usage(input=load.prompt, output=load.shortest), price)
    assert least is not None
    return Range(low=least, high=worst_cost(load.prompt, load.longest, price))


def bounds_for(
    load: Load, usd: Range[Decimal] | None, seconds: Range[float], *, caps: Caps, spent: Spent
) -> tuple[Bound, ...]:
    """Hold what a count takes against its bounds."""
    tokens = Range(low=load.prompt + load.shortest, high=load.prompt + load.longest)
    return (
        bound_of("calls", caps.calls, spent.calls, Range(low=load.calls, high=load.calls)),
        bound_of("tokens", caps.tokens, spent.tokens, tokens),
        bound_of("usd", caps.usd, spent.usd, usd),
        bound_of("seconds", Decimal(str(caps.seconds)), Decimal(0), _decimals(seconds)),
    )


def bound_of(
    name: Literal["calls", "tokens", "usd", "seconds"],
    limit: int | Decimal,
    spent: int | Decimal,
    takes: Range[int] | Range[Decimal] | None,
) -> Bound:
    """Hold what something takes against one bound; None takes nobody knows what."""
    if takes is None:
        return Bound(name=name, limit=Decimal(limit), standing="unknown", share=None)
    left = limit - spent
    standing: Standing = (
        "halts" if takes.low > left else "may halt" if takes.high > left else "within"
    )
    share = float(takes.low / left) if left > 0 else None
    return Bound(name=name, limit=Decimal(limit), standing=standing, share=share)


def _decimals(seconds: Range[float]) -> Range[Decimal]:
    return Range(low=Decimal(str(seconds.low)), high=Decimal(str(seconds.high)))
