"""Try, check, try again with what the check said, a few times at most.

`refine` does it with functions of the caller's. `refine_leaf` is what a leaf of a recursion does:
each try is a fresh worker that sees what the last check found amiss, never the last transcript, at
a higher temperature than before. Where the model takes no temperature there is nothing to raise,
and the tries that failed are shown themselves, so that the next one is built differently.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from math import isfinite
from typing import Final, Generic, Protocol, TypeVar, cast

from executors.errors import Halted, ValidationError
from executors.usage import Usage
from rlm.checks.arbiters import DEADLINE, Broken, require_deadline, run_arbiter
from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict, read_verdict

__all__ = [
    "Attempt",
    "AttemptLeaf",
    "LeafRefinement",
    "Memory",
    "RefineLeaf",
    "Refined",
    "Refinement",
    "Try",
    "Unrefined",
    "refine",
    "refine_leaf",
]

T = TypeVar("T")
F = TypeVar("F")
_TEMPERATURES: Final = (0.2, 0.7, 1.0)
_MOST: Final = 100


# ---------------------------------------------------------------- in general


@dataclass(frozen=True, slots=True, kw_only=True)
class Try(Generic[T]):
    """One attempt and what was said of it."""

    result: T
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement(Generic[T]):
    """How trying again went: the last result, and all that led to it."""

    result: T
    verdict: Verdict | Broken
    """Broken where who checks is at fault; nothing was tried after that."""
    history: tuple[Try[T], ...]
    """The attempts that were judged, in order."""

    @property
    def iterations(self) -> int:
        """Attempts that were made."""
        return len(self.history) + isinstance(self.verdict, Broken)

    @property
    def passed(self) -> bool:
        """Whether the last result is satisfactory."""
        return isinstance(self.verdict, Satisfied)


async def refine(
    attempt: Callable[[str | None, str | None], Awaitable[T] | T],
    sense: Callable[[T, str | None], object],
    *,
    max_iterations: int = 3,
    contract: str | None = None,
    deadline: float = DEADLINE,
) -> Refinement[T]:
    """Try until a check is satisfied, gives up, breaks, or the tries are used up.

    Args:
        attempt: makes a result of (critique, contract); the critique is None at first, and later
            what the check said of the last result. What it raises is raised.
        sense: says of (result, contract) whether it stands, with a verdict of ours, a mapping with
            `pass` or `status`, or an object with such fields; a plain function runs in a thread.
        contract: the definition of done, handed to both.
        deadline: seconds that one check may take.

    Raises:
        ValidationError: `max_iterations` is no positive integer, `deadline` no time, or one of the
            two no function.
        Halted: attempt or check says that the run stops.
    """
    _positive("max_iterations", max_iterations)
    require_deadline(deadline)
    for name, given in (("attempt", attempt), ("sense", sense)):
        if not callable(cast("object", given)):
            raise ValidationError(f"{name}={given!r}"[:200], hint="give a function")
    history: list[Try[T]] = []
    critique: str | None = None
    while True:
        made = attempt(critique, contract)
        result = cast("T", await made if isawaitable(made) else made)
        verdict: Verdict | Broken = await run_arbiter(
            sense, result, contract, read=read_verdict, kind="broken-sensor", deadline=deadline
        )
        if isinstance(verdict, Broken):
            return Refinement(result=result, verdict=verdict, history=tuple(history))
        history.append(Try(result=result, verdict=verdict))
        if not isinstance(verdict, NeedsRevision) or len(history) >= max_iterations:
            return Refinement(result=result, verdict=verdict, history=tuple(history))
        critique = verdict.critique


# ---------------------------------------------------------------- leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineLeaf:
    """How the leaves of a recursion try again.

    Raises:
        ValidationError: no sensor, no temperatures, or a bound that is none.
    """

    sensor: Sensor
    max_iterations: int | None = None
    """None: as many as there are temperatures."""
    temperatures: tuple[float, ...] = _TEMPERATURES
    """Of the attempts, one after another; the last one holds for all further ones."""
    rejected_buffer: bool | None = None
    """Show an attempt all that were turned down: from the second one on; never where False; where
    None, after an attempt whose temperature the model did not take."""
    deadline: float = DEADLINE
    """Seconds that the sensor may take for one result."""

    def __post_init__(self) -> None:
        if not callable(cast("object", self.sensor)):
            raise ValidationError(f"sensor={self.sensor!r}"[:200], hint="give a function")
        if self.max_iterations is not None:
            _positive("max_iterations", self.max_iterations)
        object.__setattr__(self, "temperatures", _temperatures(self.temperatures))
        if not isinstance(cast("object", self.rejected_buffer), bool | None):
            raise ValidationError(
                f"rejected_buffer={self.rejected_buffer!r}", hint="give True, False or None"
            )
        require_deadline(self.deadline)

    @property
    def iterations(self) -> int:
        """The most attempts."""
        return self.max_iterations or len(self.temperatures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(Generic[F]):
    """What one worker came to."""

    text: str
    """Its answer; the last words it said where it has none, "" where it said nothing."""
    fault: F | None = None
    """Why it did not end well; such a text is never shown to the sensor."""
    temperature: float | None = None
    """The effective one; None where the model's own held."""
    temperature_dropped: bool = False
    """It was asked for another one and did not take it."""
    usage: Usage = field(default_factory=Usage)


class AttemptLeaf(Protocol[F]):
    """Lets a fresh worker do the task once."""

    async def __call__(
        self,
        index: int,
        temperature: float,
        critique: str | None,
        earlier: Sequence[tuple[str, str]],
        /,
    ) -> Attempt[F]:
        """Return what it came to.

        Args:
            index: of the attempt, from 0: the sample of its calls.
            temperature: the one to ask for.
            critique: what was amiss with the last result; None at first and with `earlier`.
            earlier: (text, critique) of all attempts so far, where they are to be shown.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRefinement:
    """What receipts say of it, however it ended."""

    iterations: int
    """Attempts that were made."""
    passed: bool
    temperatures: tuple[float | None, ...]
    """The effective ones; None where the model's own held."""
    rejected_buffer: bool
    """An attempt was shown those before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """The sensor had its say of the last attempt, whatever it said."""

    text: str
    verdict: Verdict
    receipt: LeafRefinement
    usage: Usage
    """Of all attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrefined(Generic[F]):
    """It came to an end that the sensor did not decide."""

    best: str | None
    """The last text that an attempt came to; nobody judged it."""
    cause: F | Broken | Halted
    """A worker's fault, a sensor that is at fault, or a halt."""
    verdict: Verdict | None
    """Of the attempt before, where there was one."""
    receipt: LeafRefinement
    usage: Usage


class Memory(Protocol):
    """Keeps what a sensor said, so that a run that goes on does not ask it again."""

    def recall(self, text: str, attempt: int) -> Verdict | None:
        """Return what it said of an attempt; None where it has not been asked."""
        ...

    async def keep(self, text: str, attempt: int, verdict: Verdict) -> None:
        """Return once it is kept."""
        ...


async def refine_leaf(
    how: RefineLeaf,
    attempt: AttemptLeaf[F],
    context: SensorContext,
    *,
    memory: Memory | None = None,
) -> Refined | Unrefined[F]:
    """Try a leaf's task until its sensor is satisfied or gives up, or the tries are used up.

    A sensor that is broken ends it at once: another attempt would have nothing to go by. Halts are
    values here, so that what was made so far is kept.
    """
    return await _Leaf(how, attempt, context, memory).run()


class _Leaf(Generic[F]):
    """The tries of one leaf."""

    def __init__(
        self,
        how: RefineLeaf,
        attempt: AttemptLeaf[F],
        context: SensorContext,
        memory: Memory | None,
    ) -> None:
        self._memory = memory
        self._how = how
        self._attempt = attempt
        self._context = context
        self._temperatures: list[float | None] = []
        self._judged: list[tuple[str, str]] = []
        self._best: str | None = None
        self._verdict: Verdict | None = None
        self._buffer = self._dropped = False
        self._usages: list[Usage] = []

    async def run(self) -> Refined | Unrefined[F]:
        for index in range(self._how.iterations):
            ended: F | Broken | Halted | None
            try:
                ended = await self._once(index)
            except Halted as halted:
                ended = halted
            if ended is not None:
                return Unrefined(
                    best=self._best,
                    cause=ended,
                    verdict=self._verdict,
                    receipt=self._receipt(),
                    usage=_sum(self._usages),
                )
            if not isinstance(self._verdict, NeedsRevision):
                break
        assert self._verdict is not None
        return Refined(
            text=self._judged[-1][0],
            verdict=self._verdict,
            receipt=self._receipt(),
            usage=_sum(self._usages),
        )

    async def _once(self, index: int) -> F | Broken | None:
        """Try once; return what ends all trying, if anything does."""
        made = await self._try(index)
        self._temperatures.append(made.temperature)
        self._usages.append(made.usage)
        self._dropped = self._dropped or made.temperature_dropped
        self._best = made.text if made.text.strip() else self._best
        if made.fault is not None:
            return made.fault
        verdict = await self._sensed(made.text, index)
        if isinstance(verdict, Broken):
            return verdict
        self._verdict = verdict
        self._judged.append((made.text, verdict.critique))
        return None

    async def _sensed(self, text: str, index: int) -> Verdict | Broken:
        """Return what the sensor says of a text, or has said before the run was cut off."""
        memory = self._memory
        if memory is not None and (said := memory.recall(text, index)) is not None:
            return said
        verdict: Verdict | Broken = await run_arbiter(
            self._how.sensor,
            text,
            replace(self._context, attempt=index),
            read=read_verdict,
            kind="broken-sensor",
            deadline=self._how.deadline,
        )
        if memory is not None and not isinstance(verdict, Broken):
            await memory.keep(text, index, verdict)
        return verdict

    async def _try(self, index: int) -> Attempt[F]:
        temperatures = self._how.temperatures
        wanted = self._how.rejected_buffer
        if index > 0 and (self._dropped if wanted is None else wanted):
            self._buffer = True
            # The variety comes of what is shown; more heat on top has been measured to spoil it.
            return await self._attempt(index, temperatures[0], None, tuple(self._judged))
        critique = (self._judged[-1][1] or None) if self._judged else None
        temperature = temperatures[min(index, len(temperatures) - 1)]
        return await self._attempt(index, temperature, critique, ())

    def _receipt(self) -> LeafRefinement:
        return LeafRefinement(
            iterations=len(self._temperatures),
            passed=isinstance(self._verdict, Satisfied),
            temperatures=tuple(self._temperatures),
            rejected_buffer=self._buffer,
        )


def _sum(usages: Sequence[Usage]) -> Usage:
    """Add up tokens, tier by tier; a tier that one attempt does not know is unknown."""

    def tier(counts: list[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    return Usage(
        input=tier([usage.input for usage in usages]),
        cache_read=tier([usage.cache_read for usage in usages]),
        cache_write=tier([usage.cache_write for usage in usages]),
        output=tier([usage.output for usage in usages]),
    )


def _positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise ValidationError(f"{name}={value!r}", hint=f"give an integer from 1 to {_MOST}")


def _temperatures(value: object) -> tuple[float, ...]:
    items = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else []
    numbers = [float(cast("float", item)) for item in items if _is_number(item)]
    if not items or len(numbers) != len(items) or min(numbers) < 0:
        raise ValidationError(
            f"temperatures={value!r}"[:200], hint="give numbers from 0 on, as in (0.2, 0.7, 1.0)"
        )
    return tuple(numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
