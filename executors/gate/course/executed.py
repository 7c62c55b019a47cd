"""What came of an action that a gate let happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Executed"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed(Generic[T_co]):
    """It happened; what it took is recorded."""

    value: T_co
    aid: str
    """Of its check."""
