"""What a recursion would take, as lines for people."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from rlm.forecasts.forecast import Bound, Range
from rlm.recursions.foreseen import ONE, PlannedPart, RecursionPlan, RoleLoad, Span
from rlm.render.forecast import money
from rlm.render.lines import Line, Piece, line
from rlm.render.safe import plain

__all__ = ["plan_lines"]

_WIDTH: Final = 300
_PARTS: Final = 20


def plan_lines(plan: RecursionPlan) -> list[Line]:
    """Return the shape of a recursion, its parts, and what it takes at least and at most."""
    signals = ", ".join(plan.complexity.signals).replace("_", " ")
    lines = [
        line(Piece("plan: nothing was asked, nothing was paid", "strong")),
        _pair("task", plain(plan.task, _WIDTH)),
        _pair(
            "looks",
            f"{plan.complexity.level}, {plan.complexity.score} points"
            + (f" ({signals})" if signals else ""),
        ),
        _pair("shape", f"{plan.shape}: {plain(plan.why, _WIDTH)}"),
    ]
    if plan.route is not None:
        upgraded = " (upgraded from a search)" if plan.route.upgraded else ""
        lines.append(
            _pair("corpus", f"{plan.records or 0:,} records, {plan.distinct or 0:,} distinct texts")
        )
        lines.append(_pair("read by", f"{plan.route.retrieval}{upgraded}: {plan.route.reason}"))
    lines.append(
        _pair("nodes", f"{_span(plan.nodes)}{'' if plan.exact else ', as a model decides'}")
    )
    lines += _parts(plan.parts)
    lines += [_ends(text) for text in plan.ends]
    if not plan.loads:
        lines.append(_pair("cost", "nothing: no model is asked"))
    else:
        lines += _costs(plan)
    lines += [_pair("note", plain(note, _WIDTH)) for note in plan.notes]
    return lines


def _parts(parts: tuple[PlannedPart, ...]) -> list[Line]:
    lines = [line("    ", _part(part)) for part in parts[:_PARTS]]
    if rest := parts[_PARTS:]:
        tokens = sum(part.tokens for part in rest)
        lines.append(line(Piece(f"    … {len(rest):,} more, {tokens:,} tokens in", "dim")))
    return lines


def _part(part: PlannedPart) -> str:
    calls = part.calls.high if part.calls.low == part.calls.high else None
    facts = [f"{part.tokens:,} tokens in"]
    if part.records is not None:
        facts.insert(0, f"{part.records:,} text{'s' if part.records != 1 else ''}")
    if calls is not None:
        facts.append(f"{calls:,} call{'s' if calls != 1 else ''}")
    return f"{plain(part.name, 100)}: {', '.join(facts)}"


def _costs(plan: RecursionPlan) -> list[Line]:
    lines = [_pair("calls", _span(plan.calls))]
    lines += [_role(load) for load in plan.loads]
    lines.append(_pair("tokens", f"{_span(plan.tokens)}, by UTF-8 bytes / 3"))
    lines.append(_pair("cost", _cost(plan)))
    return [*lines, *_bounds(plan)]


def _role(load: RoleLoad) -> Line:
    text = (
        f"{_span(load.calls)} call{'' if load.calls == ONE else 's'} of {plain(load.model, 80)}, "
        f"tokens in {_span(load.input)}, out {_span(load.output)}"
    )
    return line("    ", Piece(f"{load.role}: ", "dim"), text)


def _cost(plan: RecursionPlan) -> str:
    usd = plan.usd
    if usd is None:
        return "unknown: no price is known for a model; name it with --price IN,OUT"
    if any(load.open_usd for load in plan.loads):
        return f"from {money(usd.low)} USD, up to the bounds of the run"
    return _range(usd)


def _range(usd: Range[Decimal]) -> str:
    if usd.low == usd.high:
        return f"{money(usd.low)} USD"
    return f"{money(usd.low)} to {money(usd.high)} USD"


def _bounds(plan: RecursionPlan) -> list[Line]:
    lines = [
        _pair("bounds", Piece(f"that of {_bound(bound)} would end it before it is done", "bad"))
        for bound in plan.bounds
        if bound.standing == "halts"
    ]
    lines += [
        _pair("bounds", Piece(f"that of {_bound(bound)} may end it", "warn"))
        for bound in plan.bounds
        if bound.standing == "may halt"
    ]
    if not lines:
        said = ", ".join(_bound(bound) for bound in plan.bounds)
        lines.append(_pair("bounds", f"none is reached: {said}"))
    if not plan.exact:
        tree = (
            f"{plan.max_nodes:,} nodes that models ask for, {plan.max_depth:,} levels below the "
            f"root, {plan.rounds:,} rounds of a worker"
        )
        lines.append(_pair("tree", tree))
    return lines


def _bound(bound: Bound) -> str:
    if bound.standing == "unknown":
        return f"{bound.limit.normalize():,f} USD (binds nothing: no price is known)"
    unit = "USD" if bound.name == "usd" else bound.name.rstrip("s" if bound.limit == 1 else "")
    return f"{bound.limit.normalize():,f} {unit}"


def _ends(text: str) -> Line:
    return line("  ", Piece(f"would end incomplete: {plain(text, _WIDTH)}", "bad"))


def _span(span: Span) -> str:
    if span.low == span.high:
        return f"{span.low:,}"
    if span.high is None:
        return f"{span.low:,} or more"
    return f"{span.low:,} to {span.high:,}"


def _pair(name: str, value: str | Piece) -> Line:
    return line("  ", Piece(f"{name}: ", "dim"), value)
