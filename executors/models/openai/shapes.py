"""Reading JSON whose shape nobody promises: what has another shape is empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

__all__ = ["listed", "mapping", "text_of"]


def mapping(value: object) -> Mapping[str, object]:
    """Return an object, or an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def listed(value: object) -> Sequence[object]:
    """Return a list, or an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def text_of(value: object) -> str:
    """Return a text, whatever form it has: a string, parts of text, or nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    parts = (mapping(part).get("text") for part in listed(value))
    return "".join(part for part in parts if isinstance(part, str))
