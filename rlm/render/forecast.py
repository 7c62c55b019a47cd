"""What a dry run says, as lines for people."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from rlm.forecasts.forecast import Bound, CountPlan, Range
from rlm.render.lines import Line, Piece, line
from rlm.render.progress import duration
from rlm.render.safe import plain

__all__ = ["forecast_lines", "money"]

_WIDTH: Final = 300
# Digits of an amount of USD that mean something in a forecast.
_DIGITS: Final = 3


def forecast_lines(plan: CountPlan) -> list[Line]:
    """Return what a count would take, what of it is free, and which bound would end it."""
    lines = [
        line(Piece("dry run: nothing was asked, nothing was paid", "strong")),
        _pair("question", plain(plan.question, _WIDTH)),
        _pair("records", _records(plan)),
        _pair("judge", plain(plan.judge, _WIDTH)),
    ]
    if not plan.asks:
        return [*lines, _pair("cost", "nothing: no model is asked"), *_kept(plan)]
    if plan.restored:
        lines.append(_pair("judged", f"{plan.restored:,} verdicts stand in the run already"))
    lines += [_pair("calls", _calls(plan)), *_notes(plan)]
    low, high = plan.output_tokens.low, plan.output_tokens.high
    lines += [
        _pair(
            "tokens in", f"{plan.input_tokens:,}, by UTF-8 bytes / 3: more than most models count"
        ),
        _pair(
            "tokens out", f"{low:,} to {high:,}, from the shortest answers to the longest allowed"
        ),
        _pair("cost", _cost(plan.usd)),
        _pair("time", _time(plan)),
        *_bounds(plan),
    ]
    return [*lines, *_kept(plan)]


def _records(plan: CountPlan) -> str:
    return (
        f"{plan.records:,}, {plan.empty:,} without text, {plan.identical:,} with the text of an "
        f"earlier one; {plan.distinct:,} distinct texts"
    )


def _calls(plan: CountPlan) -> str:
    passes = f"{plan.passes} pass{'es' if plan.passes != 1 else ''}"
    windows = f"{plan.load.windows:,} window{'s' if plan.load.windows != 1 else ''}"
    return (
        f"{plan.calls:,} for {windows} of up to {plan.window} in {passes}; "
        "replies that cannot be used cost more"
    )


def _notes(plan: CountPlan) -> list[Line]:
    load = plan.load
    facts = (
        (load.filed, "more were paid for already, and come from the run"),
        (load.shared, "more are identical to one of these, and come with it"),
        (load.refused, "items are too long for the model or its limits, and would stay unresolved"),
    )
    return [line("    ", f"{count:,} {what}") for count, what in facts if count]


def _cost(usd: Range[Decimal] | None) -> str:
    if usd is None:
        return "unknown: no price is known for this model; name it with --price IN,OUT"
    if usd.low == usd.high:
        return f"{money(usd.low)} USD"
    return f"{money(usd.low)} to {money(usd.high)} USD"


def money(usd: Decimal) -> str:
    """Return an amount of USD by the digits that mean something."""
    if usd == 0:
        return "0"
    places = max(2, _DIGITS - 1 - usd.adjusted())
    return f"{usd:,.{places}f}"


def _time(plan: CountPlan) -> str:
    assert plan.seconds is not None
    low, high = duration(plan.seconds.low), duration(plan.seconds.high)
    span = low if low == high else f"{low} to {high}"
    return (
        f"{span}, if a call takes {plan.latency:g} s (a guess), with {plan.concurrency} in flight"
    )


def _bounds(plan: CountPlan) -> list[Line]:
    first = plan.halted_by
    doubtful = [bound for bound in plan.bounds if bound.standing == "may halt"]
    lines: list[Line] = []
    if first is not None:
        ends = f"that of {_bound(first)} would end the count before it is done"
        lines.append(_pair("bounds", Piece(ends, "bad")))
    for bound in doubtful:
        may_end = f"that of {_bound(bound)} may end it, if replies are long"
        lines.append(_pair("bounds", Piece(may_end, "warn")))
    if not lines:
        said = ", ".join(_bound(bound) for bound in plan.bounds)
        lines.append(_pair("bounds", f"none is reached: {said}"))
    return lines


def _bound(bound: Bound) -> str:
    if bound.name == "seconds":
        return duration(float(bound.limit))
    if bound.standing == "unknown":
        return f"{bound.limit.normalize():,f} USD (binds nothing: no price is known)"
    unit = "USD" if bound.name == "usd" else bound.name.rstrip("s" if bound.limit == 1 else "")
    return f"{bound.limit.normalize():,f} {unit}"


def _kept(plan: CountPlan) -> list[Line]:
    return [] if plan.run is None else [_pair("run", plain(plan.run, _WIDTH))]


def _pair(name: str, value: str | Piece) -> Line:
    return line("  ", Piece(f"{name}: ", "dim"), value)
