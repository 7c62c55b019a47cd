"""A line in as many bytes as it may have: what is long is cut, what decides and costs is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from executors.replies import JsonValue

__all__ = ["TRUNCATED", "bounded", "json_bytes", "portions"]

TRUNCATED: Final = "_truncated"
_MORE: Final = "…"
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        [
            "aid",
            "awaiting",
            "cap",
            "classification",
            "counted",
            "counts",
            "decision",
            "dimension",
            "held",
            "new_cap",
            "old_cap",
            "pricing",
            "ratio",
            "rule",
            "severity",
            "spent",
            "tier",
            "tokens",
            "usd",
        ]
    ),
    "action": frozenset({"type", "tool"}),
    "result": frozenset({"cost_usd", "counts", "pricing", "tokens"}),
}
"""Fields that stay, of a line and of two of its members."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """How much of what may be cut stays."""

    text: int
    """Bytes of JSON of one text."""
    items: int
    depth: int
    kept: int = 200
    """Bytes of one text that stays."""


_MEASURES: Final = (
    _Measure(1_000, 50, 8),
    _Measure(400, 30, 6),
    _Measure(160, 15, 4),
    _Measure(60, 8, 3),
    _Measure(24, 4, 2),
    _Measure(0, 0, 0, kept=80),
)


def bounded(fields: Mapping[str, JsonValue], room: int) -> bytes:
    """Return fields as JSON without the braces around it, in so many bytes at most.

    Args:
        fields: of which those that decide and cost are some hundred bytes.
    """
    raw = json_bytes(fields)
    for measure in _MEASURES:
        if len(raw) - 2 <= room:
            break
        raw = json_bytes({**_members(fields, "", measure), TRUNCATED: True})
    return raw[1:-1]


def portions(counts: Mapping[str, int], room: int) -> Iterator[dict[str, JsonValue]]:
    """Divide counts into parts of so many bytes of JSON at most, one at least."""
    part: dict[str, JsonValue] = {}
    size = 2
    for name, units in counts.items():
        more = len(json_bytes({name: units})) - 1
        if part and size + more > room:
            yield part
            part, size = {}, 2
        part[name] = units
        size += more
    yield part


def json_bytes(value: object) -> bytes:
    """Return plain JSON as it stands in a line: compact, characters as they are."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def _members(
    members: Mapping[str, JsonValue], where: str, measure: _Measure
) -> dict[str, JsonValue]:
    """Cut the members of a line, or of one of those in it that have fields to keep."""
    kept = _KEPT[where]
    found: dict[str, JsonValue] = {}
    left = measure.items
    for name, value in members.items():
        if name in kept:
            found[name] = _cut(value, measure.kept) if isinstance(value, str) else value
        elif not where and name in _KEPT and isinstance(value, dict):
            found[name] = _members(value, name, measure)
        elif left > 0 and len(json_bytes(name)) <= max(measure.text, 40):
            found[name] = _shrunk(value, measure, measure.depth - 1)
            left -= 1
    return found


def _shrunk(value: JsonValue, measure: _Measure, depth: int) -> JsonValue:
    match value:
        case str():
            return _cut(value, measure.text)
        case dict() | list() if depth <= 0:
            return _MORE
        case dict():
            some = list(value.items())[: measure.items]
            found = {
                _cut(name, measure.text): _shrunk(one, measure, depth - 1) for name, one in some
            }
            return found if len(some) == len(value) else {**found, _MORE: len(value) - len(some)}
        case list():
            items: list[JsonValue] = [
                _shrunk(one, measure, depth - 1) for one in value[: measure.items]
            ]
            return items if len(items) == len(value) else [*items, _MORE]
        case _:
            return value


def _cut(text: str, room: int) -> str:
    """Return as much of a text as its JSON has room for."""
    if len(text) <= room and len(json_bytes(text)) - 2 <= room:
        return text
    head = text[:room]
    while len(raw := json_bytes(head)) - 2 > room:
        head = head[: len(head) * room // len(raw)]
    return head + _MORE
