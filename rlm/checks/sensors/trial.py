"""A result that is Python code and has to pass tests, run where it can do no harm."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, cast, get_args

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    move_on_after,
    open_process,
)
from anyio.abc import Process

from executors.errors import ConfigError, RlmError, ValidationError
from executors.wrappings import Piece, after_leading, fences, thoughts
from planner.results import is_count
from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.sensors.confining import can_confine
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict

__all__ = ["Isolation", "TestsBroken", "python_tests"]

Isolation = Literal["strict", "none"]
_CHILD: Final = Path(__file__).with_name("child.py")
_PYTHON: Final = frozenset({"python", "py", "python3", ""})
_REPORT: Final = 1 << 20  # bytes
_STARTING: Final = 1.0  # seconds that Python may take to begin
_SHOWN: Final = 8


class TestsBroken(RlmError):
    """Tests that cannot be run, whatever the result is."""

    code = "tests-broken"
    fault = "yours"
    __test__ = False  # or pytest would take it for one of its own


def python_tests(
    tests: str, *, isolation: Isolation = "strict", seconds: float = 10.0, memory: int = 1 << 30
) -> Sensor:
    """Return a sensor that is satisfied by Python code which passes tests.

    The code is what stands in the result's Python fences, or all of it where there is none. The tests
    import it as `solution`; they are functions named `test…` without parameters, classes of unittest,
    or bare asserts. Tests that nothing can fail are broken, and pass nothing.

    Both run in a process of their own, in a folder that is removed afterwards, with no variables of
    this environment, as the interpreter that runs us: packages that it has can be used. Under
    `isolation="strict"` it can open no sockets, start no processes and, where the kernel has
    Landlock, see no files but its own; the verdict's `extra["confined"]` says which. Under "none"
    only the bounds hold: for code that you would run yourself.

    It is a check against mistakes. Code that sets out to deceive from within the process of its own
    tests can do so.

    Args:
        tests: source of the tests; a worker never sees it.
        seconds: of wall clock for all of them; the deadline of whoever runs the sensor, 120 s unless
            it says otherwise, has to be longer.
        memory: bytes of address space.

    Raises:
        ValidationError: no tests, or a bound that is none.
        ConfigError: this system offers no isolation, and it was not waived.
    """
    if isolation not in get_args(Isolation):
        raise ValidationError(
            f"isolation={isolation!r}", where="rlm.python_tests", hint="choose one of strict, none"
        )
    if not isinstance(cast("object", tests), str) or not tests.strip():
        raise ValidationError(
            f"tests={tests!r}"[:200], where="rlm.python_tests", hint="give the source of the tests"
        )
    if not _is_number(seconds) or not 0 < seconds <= 86_400:
        raise ValidationError(
            f"seconds={seconds!r}", where="rlm.python_tests", hint="give a number above 0"
        )
    if not is_count(memory) or not (64 << 20) <= memory <= (1 << 48):
        raise ValidationError(
            f"memory={memory!r}", where="rlm.python_tests", hint="give bytes, 67,108,864 at least"
        )
    if isolation == "strict" and not can_confine():
        raise ConfigError(
            f"code cannot be isolated on {sys.platform}",
            where="rlm.python_tests",
            hint="run it on Linux, or without: python_tests(…, isolation='none')",
        )
    bench = _Bench(tests=tests, strict=isolation == "strict", seconds=seconds, memory=memory)

    async def sense(result: str, context: SensorContext) -> Verdict:
        del context
        return await bench.verdict(_code_in(result))

    return sense


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    tests: str
    strict: bool
    seconds: float
    memory: int

    async def verdict(self, solution: str) -> Verdict:
        with TemporaryDirectory(prefix="rlm-tests-", ignore_cleanup_errors=True) as folder:
            ended = await self._run(solution, folder)
        if ended is None:
            why = f"the tests did not end within {self.seconds:g} s"
            return NeedsRevision(critique=why)
        code, said = ended
        report = _read(said)
        if report is None:
            return NeedsRevision(critique=f"the tests did not come to their end: {_ending(code)}")
        return self._judged(report)

    def _judged(self, report: Mapping[str, Any]) -> Verdict:
        if self.strict and "network" not in report["confined"]:
            raise ConfigError(
                "the kernel did not let the tests be isolated, so they were not run",
                where="rlm.python_tests",
                hint="allow seccomp filters, or waive it: python_tests(…, isolation='none')",
            )
        extra = {"ran": report["ran"], "confined": tuple(report["confined"])}
        failed = [(str(name), str(why)) for name, why in report["failed"]]
        if report["fault"] == "tests":
            label, why = failed[0]
            what = "test nothing" if label == "no test" else "cannot be loaded"
            raise TestsBroken(
                f"the tests {what}: {why}",
                where="rlm.python_tests",
                hint="mend the tests: no result can pass or fail them as they stand",
            )
        if not failed:
            return Satisfied(extra=extra)
        lines = [f"- {name}: {why}" for name, why in failed[:_SHOWN]]
        more = [f"- and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
        head = f"{len(failed)} of {report['ran']} test(s) failed:"
        return NeedsRevision(critique="\n".join([head, *lines, *more]), extra=extra)

    async def _run(self, solution: str, folder: str) -> tuple[int, bytes] | None:
        """Return how the process ended and what it said; None where its time was up."""
        order = {
            "solution": solution,
            "tests": self.tests,
            "folder": folder,
            "seconds": int(self.seconds) + 2,
            "memory": self.memory,
            "strict": self.strict,
        }
        process = await open_process(
            [sys.executable, "-I", "-B", "-X", "utf8", str(_CHILD)],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            with move_on_after(self.seconds + _STARTING) as scope:
                return await _exchange(process, json.dumps(order).encode() + b"\n")
            assert scope.cancelled_caught
            return None
        finally:
            await _ended(process)


async def _exchange(process: Process, order: bytes) -> tuple[int, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenResourceError, ClosedResourceError, OSError):  # its exit will say why
        await process.stdin.send(order)
        await process.stdin.aclose()
    said = bytearray()
    async for some in process.stdout:
        said += some
        if len(said) > _REPORT:
            break
    return await process.wait(), bytes(said)


async def _ended(process: Process) -> None:
    """End the process with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with CancelScope(shield=True):
        await process.aclose()


def _read(said: bytes) -> Mapping[str, Any] | None:
    try:
        report = json.loads(said)
    except ValueError:
        return None
    return cast("dict[str, Any]", report) if isinstance(report, dict) else None


def _ending(code: int) -> str:
    if code >= 0:
        return "their process ended itself"
    try:
        return f"their process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"their process was ended by signal {-code}"


def _code_in(result: str) -> str:
    """Return the Python of a result: what its fences hold, or all of it where it has none."""
    answer = after_leading(Piece(0, result), thoughts(result)).text
    blocks = [block for block in fences(answer) if block.language.lower() in _PYTHON]
    return "\n\n".join(answer[slice(*block.body)] for block in blocks) or answer
