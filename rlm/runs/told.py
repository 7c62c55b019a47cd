"""What the log of a run tells of its calls, where no receipt says it: it was killed, or still runs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

from executors.journal.json_lines import decode
from rlm.runs.keeping import RunEntry

__all__ = ["with_told_calls"]


def with_told_calls(entry: RunEntry) -> RunEntry:
    """Return an entry with the calls and USD of all sessions, also of one that has not ended."""
    if entry.state not in ("killed", "running"):
        return entry
    try:
        calls, usd = _paid(entry.directory / "events.jsonl")
    except OSError:  # it was killed before its log began, or is gone
        return entry
    return replace(entry, calls=calls, usd=usd)


def _paid(log: Path) -> tuple[int, Decimal | None]:
    calls = priced = 0
    total = Decimal(0)
    with log.open("rb") as lines:
        for raw in lines:
            if b"call_finished" not in raw:  # most lines; to read each takes a large log seconds
                continue
            cost = _cost(raw)
            calls += cost is not False
            if isinstance(cost, Decimal):
                priced, total = priced + 1, total + cost
    return calls, total if priced or not calls else None


def _cost(raw: bytes) -> Decimal | bool | None:
    """Return the USD of a call that was paid; None of unknown price, False where it is none."""
    try:
        event = decode(raw)
    except ValueError:  # the last line of a run that was killed is cut anywhere
        return False
    if not isinstance(event, dict):
        return False
    fields = cast("dict[str, object]", event)
    if fields.get("kind") != "call_finished" or fields.get("source") != "paid":
        return False
    try:
        cost = Decimal(str(fields.get("cost")))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() else None
