"""The gate of a run, as its caller gives it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, Union

from executors.errors import ValidationError

if TYPE_CHECKING:  # its configuration is heavy, and most runs have none
    from executors.gate.config.config import GateConfig
    from executors.gate.gate import Gate
    from executors.gate.people.human import HumanEvent

__all__ = ["GateLike", "Human", "gate_name", "require_gate"]

GateLike: TypeAlias = Union[
    "Gate", "GateConfig", Mapping[str, object], str, "os.PathLike[str]"
]  # a union of names that exist for type checkers alone
"""A gate, a configuration, the same as a mapping, or the file that holds one."""
Human: TypeAlias = Callable[["HumanEvent"], object]
"""Answers a gate's question; see `executors.gate.people.human`."""
_METHODS: Final = ("check", "record", "release", "allows")


def require_gate(gate: object, human: object) -> None:
    """See to it that a gate is one, before anything is read or spent.

    Raises:
        ValidationError: it is none, or whoever is to be asked cannot be called.
    """
    if not isinstance(gate, str | os.PathLike | Mapping | None) and not _is_gate(gate):
        raise ValidationError(
            f"gate={gate!r}"[:200],
            hint="give a Gate, a GateConfig, a mapping, or the file of a configuration",
        )
    if isinstance(gate, str) and not gate.strip():
        raise ValidationError("gate is empty", hint="name a file, or leave it out")
    if human is not None and not callable(human):
        raise ValidationError(f"human={human!r}"[:200], hint="give a function, as terminal_human()")


def gate_name(gate: GateLike) -> str:
    """Return how a receipt names a gate: by its file, where it has one."""
    if isinstance(gate, str | os.PathLike):
        return os.fsdecode(gate).encode("utf-8", "backslashreplace").decode("utf-8")
    return "given"


def _is_gate(gate: object) -> bool:
    return hasattr(gate, "model_dump") or all(
        callable(getattr(gate, name, None)) for name in _METHODS
    )
