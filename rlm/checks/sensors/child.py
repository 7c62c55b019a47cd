"""The process in which tests run against code that a model wrote. Started as a file, on its own.

One line of JSON in says what to run; one line of JSON out says how it went:

    {"solution": "...", "tests": "...", "folder": "/tmp/x", "seconds": 10, "memory": 1073741824,
     "strict": true}
    {"confined": ["files", "network", "processes"], "ran": 2, "fault": null,
     "failed": [["test_add", "AssertionError: ..."]]}

`fault` says whose code could not be loaded at all: "solution", "tests" or null. Tests that nothing
can fail are at fault, too, under the name "no test". Both sources are
loaded from memory, so that the one cannot rewrite the other on disk.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.abc
import importlib.util
import inspect
import json
import os
import sys
import traceback
import unittest
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final, TypeGuard

__all__ = ["main"]

_MESSAGE: Final = 400  # characters of what one failure says
_FAILURES: Final = 20


class _Held(importlib.abc.SourceLoader):
    """A module whose source is in memory."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source.encode("utf-8", "surrogatepass")

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: bytes | str) -> bytes:
        if path != self._path:
            raise FileNotFoundError(path)
        return self._source


def main() -> None:
    """Run what is asked for, and say how it went."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    order = json.loads(sys.stdin.buffer.readline())
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what the code prints is nobody's business
        os.dup2(quiet, standard)
    confining = _beside("confining")
    os.chdir(order["folder"])
    confining.bound(seconds=order["seconds"], memory=order["memory"])
    confined: list[str] = confining.confine(order["folder"]) if order["strict"] else []
    if order["strict"] and "network" not in confined:
        report: dict[str, object] = {"confined": confined, "ran": 0, "fault": None, "failed": []}
    else:
        report = {"confined": confined} | _ran(order["solution"], order["tests"])
    out.write(json.dumps(report) + "\n")
    out.flush()
    os._exit(0)  # threads of the code, and what it wants done at the end, are over as well


def _beside(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    return _loaded(name, str(path), path.read_text(encoding="utf-8"))


def _loaded(name: str, path: str, source: str) -> ModuleType:
    spec = importlib.util.spec_from_loader(name, _Held(path, source), origin=path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ran(solution: str, tests: str) -> dict[str, object]:
    for name, source in (("solution", solution), ("tests", tests)):
        error = _error_of(partial(_loaded, name, f"{name}.py", source))
        if error is not None:
            fault = None if name == "tests" and _is_a_failure(error) else name
            return {"ran": 1, "fault": fault, "failed": [(f"loading the {name}", _told(error))]}
    cases = list(_cases(sys.modules["tests"]))
    idle = _idle(tests, sys.modules["tests"], cases=len(cases))
    if idle is not None:
        return {"ran": 0, "fault": "tests", "failed": [("no test", idle)]}
    errors = [(label, _error_of(call)) for label, call in cases]
    failed = [(label, _told(error)) for label, error in errors if error is not None]
    return {"ran": max(len(cases), 1), "fault": None, "failed": failed[:_FAILURES]}


def _error_of(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - of code on trial: it is what is reported
        return error
    return None


def _is_a_failure(error: BaseException) -> bool:
    """Whether tests that could not be loaded speak of the solution, and are not at fault themselves."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.filename == "solution.py" for frame in frames):
        return True
    if isinstance(error, ImportError):
        return error.name == "solution"
    return not isinstance(error, SyntaxError | NameError)


def _idle(source: str, module: ModuleType, *, cases: int) -> str | None:
    """Return why nothing, or not all of it, would be tested; None where all is well."""
    for name, value in vars(module).items():
        if not _is_test(value, name) or value.__module__ != "tests":
            continue
        if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
            return f"{name} yields, so that its body never runs"
        needed = [
            one.name for one in inspect.signature(value).parameters.values() if _is_needed(one)
        ]
        if needed:
            return (
                f"{name} wants {', '.join(needed)}, and nobody gives it: there are no fixtures here"
            )
    if cases or any(map(_can_fail, ast.parse(source).body)):
        return None
    return "there is no function named test…, no class of unittest and no assert that is run"


def _is_test(value: object, name: str) -> TypeGuard[FunctionType]:
    return name.startswith("test") and inspect.isfunction(value)


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic


def _can_fail(statement: ast.AST) -> bool:
    """Whether a statement that is run with its module can speak of the solution."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False
    if isinstance(statement, ast.Assert | ast.Raise | ast.Call):
        return True
    return any(map(_can_fail, ast.iter_child_nodes(statement)))


def _cases(module: ModuleType) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield functions named test_*, coroutines too, and the methods of unittest's classes."""
    for name, value in list(vars(module).items()):
        if _is_test(value, name):
            yield name, partial(_run, value)
    for case in _flat(unittest.defaultTestLoader.loadTestsFromModule(module)):
        yield case.id(), case.debug


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _flat(part)
        else:
            yield part


def _run(test: Callable[[], object]) -> None:
    value = test()
    if inspect.iscoroutine(value):
        value = asyncio.run(value)
    if value is False:
        raise AssertionError("it returned False")


def _told(error: BaseException) -> str:
    """Return what went wrong, with the line of the tests where it did."""
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename == "tests.py" and frame.line]
    where = f" (in: {lines[-1]})" if lines else ""
    return f"{said[:_MESSAGE]}{where[:_MESSAGE]}"


if __name__ == "__main__":
    main()
