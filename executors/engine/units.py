"""Units: pieces of work that other processes do, and what comes back of each.

A unit is a value: the name of a function of ours, where its part of the work lies, options, and the
lease that it spends within. Nothing in it is code, and no key of anybody's is. While it runs it has
a line to the coordinator, on which it asks and is told.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, Self, TypeAlias, cast

from executors.errors import ConfigError, Halted, InternalError, RlmError
from executors.replies import JsonValue

__all__ = [
    "MOST_PART_BYTES",
    "Answering",
    "Entry",
    "Line",
    "UnitDone",
    "UnitExecutor",
    "UnitFailed",
    "UnitLost",
    "UnitReport",
    "UnitResult",
    "UnitSpec",
    "entry_of",
]

MOST_PART_BYTES: Final = 4_096
"""What a reference to a part of the work may take: it points at records and holds none."""
_PACKAGES: Final = frozenset({"corpus", "executors", "planner", "rlm"})

JsonObject: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpec:
    """A unit as it travels.

    Raises:
        InternalError: its part is no reference any more but the work itself.
    """

    id: str
    """Its name within the run, for people and for its line."""
    entry: str
    """The function that does it: "package.module:function", of a package of ours."""
    part: JsonObject
    """Where its part of the work lies."""
    options: JsonObject
    """What is the same for all units of a run."""
    lease: JsonObject
    """What it may use; see `executors.leases`."""

    def __post_init__(self) -> None:
        size = len(json.dumps(self.part).encode())
        if size >= MOST_PART_BYTES:
            raise InternalError(
                f"the part of unit {self.id!r} takes {size:,} bytes; {MOST_PART_BYTES:,} is the most"
            )

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls(**cast("dict[str, Any]", json.loads(text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReport:
    """What the function of a unit returns: also where a bound ended it, what it had by then."""

    value: JsonObject
    halted: Halted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDone:
    """A unit that came to its end."""

    unit: str
    report: UnitReport


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLost:
    """A unit whose worker is gone; what it did until then stands in the journal at best."""

    unit: str
    worker: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFailed:
    """A unit that raised: its worker lives, and the next one may raise the same."""

    unit: str
    worker: str
    error: RlmError


UnitResult: TypeAlias = UnitDone | UnitLost | UnitFailed

Answering = Callable[[str, str, bytes], Awaitable[bytes]]
"""The coordinator's end of the lines: unit, what it asks, with what; returns the answer.

A unit waits for it, so that what it is told to be durable is so. It must not raise."""


class Line(Protocol):
    """The worker's end of the line between a unit and the coordinator."""

    async def ask(self, what: str, body: bytes = b"") -> bytes:
        """Return the coordinator's answer.

        Raises:
            OSError: the coordinator is gone, or has given this unit up.
        """
        ...

    def on_word(self, hear: Callable[[str, bytes], None]) -> None:
        """Hear what the coordinator says by itself, from now on and what it said already."""
        ...


Entry = Callable[[UnitSpec, Line], Awaitable[UnitReport]]


class UnitExecutor(Protocol):
    """What runs units in other processes."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        ...

    def run(self, units: AsyncIterator[UnitSpec], answer: Answering) -> AsyncIterator[UnitResult]:
        """Yield the result of each unit as it comes.

        Units are taken only when a worker is free for them, so that never more than twice as many
        are out as there are workers. A lost unit is not tried again here: who gave it decides.

        Raises:
            Halted: there was no worker for too long.
        """
        ...

    async def tell(self, unit: str, what: str, body: bytes = b"") -> None:
        """Say something to a unit that runs; lost where it has ended."""
        ...


def entry_of(name: str) -> Entry:
    """Return the function that a unit names.

    Raises:
        ConfigError: it is of no package of ours, or this installation does not have it.
    """
    module, _, function = name.partition(":")
    if module.partition(".")[0] not in _PACKAGES:
        raise ConfigError(f"the unit asks for {name!r}, which is no function of ours")
    try:
        return cast("Entry", getattr(import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"this worker cannot import {name!r}: {error}",
            hint="install the same version of rlm-recurse, with its extras, for every worker",
        ) from error
