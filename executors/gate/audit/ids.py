"""Which run of its family writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from executors.errors import ConfigError
from executors.ids import new_run_id

__all__ = ["DEPTH", "PARENT", "ROOT", "RunIds"]

ROOT: Final = "RLM_ROOT_RUN_ID"
PARENT: Final = "RLM_PARENT_RUN_ID"
DEPTH: Final = "RLM_SPAWN_DEPTH"
_LONGEST: Final = 100
"""Characters of an id."""
_DEEPEST: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIds:
    """A run, and where it stands in its family."""

    run: str
    parent: str | None = None
    """The run whose process started this one."""
    root: str | None = None
    """The run that all of the family comes of; None where that is this one."""
    depth: int = 0
    """Processes above this one."""

    def __post_init__(self) -> None:
        for value in (self.run, self.parent, self.root):
            if value is not None and not _is_id(value):
                raise ConfigError(
                    f"{value[:_LONGEST]!r} is no id of a run",
                    where=f"as given, or in {ROOT} or {PARENT}",
                    hint=f"use letters, digits and signs, {_LONGEST} at most",
                )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, now: datetime, run: str | None = None
    ) -> Self:
        """Return the ids of a process, as the one that started it has told it.

        Args:
            run: its own, where it has one already.

        Raises:
            ConfigError: it was told something that cannot be.
        """
        return cls(
            run=run or new_run_id(now),
            parent=environment.get(PARENT) or None,
            root=environment.get(ROOT) or None,
            depth=_depth(environment.get(DEPTH) or "0"),
        )

    def for_child(self) -> dict[str, str]:
        """Return the variables by which a child process knows its family."""
        return {ROOT: self.root or self.run, PARENT: self.run, DEPTH: str(self.depth + 1)}


def _is_id(value: str) -> bool:
    return 0 < len(value) <= _LONGEST and value.isascii() and value.isprintable()


def _depth(told: str) -> int:
    # What cannot be read is no zero: a child that counts as a root could have children for ever.
    if told.isascii() and told.isdigit() and len(told) <= 4 and int(told) <= _DEEPEST:
        return int(told)
    raise ConfigError(
        f"{told[:40]!r} is no depth",
        where=f"the environment variable {DEPTH}",
        hint="it is set by the process above; unset it where there is none",
    )
