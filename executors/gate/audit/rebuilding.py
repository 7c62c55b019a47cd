"""What a run family used, added up from its lines: equal to what its ledger says.

Three kinds of lines draw on the budget:

call     a settled call of a model, or many at once: calls, tokens, USD, and a turn each
gate     an action that is allowed: what it counts as stands in `counted`
record   what an action took. What a reservation was settled with has its own line, and is not added
         twice (`held`); what was never checked counts with its record
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Final

from executors.gate.amounts import BEYOND
from executors.gate.audit.reading import AuditLine, read
from executors.gate.ledger.bounds import dimension_of
from executors.gate.ledger.totals import Totals, recorded
from executors.replies import JsonValue

__all__ = ["totals", "totals_of"]

_LLM: Final = "llm"
_UNPRICED: Final = "unpriced"


def totals(path: Path) -> Totals:
    """Add up the lines of a file; a file that is not there adds nothing.

    Raises:
        RunDirError: it cannot be read.
    """
    return totals_of(read(path)) if path.exists() else Totals()


def totals_of(lines: Iterable[AuditLine]) -> Totals:
    """Add up lines, in the order in which they stand."""
    whole = Totals()
    for line in lines:
        more = _added(line)
        if more is not None:
            whole += more
    return whole


def _added(line: AuditLine) -> Totals | None:
    fields = line.fields
    match line.phase:
        case "call":
            return _call(fields)
        case "gate" if line.text("decision") == "allow":
            return _admitted(line)
        case "record":
            return _recorded(line)
        case "counts":
            return Totals(resources=_counts(fields.get("counts")))
        case "topup":
            return _raised(line.text("dimension"), fields.get("new_cap"))
        case "terminate":
            return Totals(terminated=line.text("reason") or "somebody ended the run")
        case _:
            return None


def _call(fields: Mapping[str, JsonValue]) -> Totals:
    unpriced, usd, calls = fields.get("unpriced"), _usd(fields.get("usd")), _whole(fields, "calls")
    return Totals(
        calls=calls,
        tokens=_whole(fields, "tokens"),
        usd=usd,
        unpriced=unpriced if isinstance(unpriced, bool) else None,
        priced=int(unpriced is False and usd > 0),
        turns=calls,
    )


def _admitted(line: AuditLine) -> Totals:
    """Return what an allowed action counts as; by its type, where the line does not say."""
    counted = line.fields.get("counted")
    if isinstance(counted, dict):
        return Totals(
            turns=_whole(counted, "turn"),
            tool_rounds=_whole(counted, "toolRound"),
            children=_whole(counted, "child"),
        )
    kind = line.action.get("type")
    return Totals(turns=1, tool_rounds=int(kind != _LLM), children=int(kind == "spawn"))


def _recorded(line: AuditLine) -> Totals:
    result = line.fields.get("result")
    took = result if isinstance(result, dict) else {}
    counts = _counts(took.get("counts"))
    if line.fields.get("held") is True:
        return Totals(resources=counts)
    more = recorded(
        call=line.action.get("type") == _LLM,
        usd=_usd(took.get("cost_usd")),
        unpriced=took.get("pricing") == _UNPRICED,
        tokens=_whole(took, "tokens"),
        counts=counts,
    )
    checked = line.fields.get("aid") is not None
    return replace(more, turns=0, tool_rounds=0) if checked else more


def _raised(name: str, cap: JsonValue) -> Totals | None:
    dimension, amount = dimension_of(name), _usd(cap)
    return None if dimension is None or cap is None else Totals(caps={dimension: amount})


def _counts(counts: JsonValue) -> dict[str, int]:
    named = counts if isinstance(counts, dict) else {}
    return {name: _whole(named, name) for name in named}


def _whole(fields: Mapping[str, JsonValue], name: str) -> int:
    """Return a count; whatever is none is nothing: nobody earns by a line that was tampered with."""
    value = fields.get(name)
    return min(value, BEYOND) if type(value) is int and value > 0 else 0


def _usd(value: JsonValue) -> Decimal:
    try:
        amount = Decimal(value) if isinstance(value, str) else Decimal(0)
    except ArithmeticError:
        return Decimal(0)
    return min(amount, Decimal(BEYOND)) if amount.is_finite() and amount > 0 else Decimal(0)
