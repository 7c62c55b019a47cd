"""The rules of the house that no linter holds."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("corpus", "executors", "planner", "rlm")
OURS = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
ALL = [
    *OURS,
    *(f for top in ("tests", "tools", "examples") for f in sorted((ROOT / top).rglob("*.py"))),
]

LISTED, FAILS = 400, 600  # lines a file

# Where exceptions become values: a node at the scheduler's boundary, a tool call in the loop.
# Module, and how many broad excepts it may hold.
BROAD_EXCEPTS = {
    "corpus.judges.rule": 1,  # the caller's predicate, on one record
    "executors.engine.local": 1,
    "executors.boundary": 2,  # a tool, a policy, a person: what a caller's code raised is a value
    "executors.threads": 1,  # raised again in the task that waits for the thread
    "rlm.checks.arbiters": 2,  # the caller's sensor or verifier, and its thread: a fault of its own label
    "rlm.checks.sensors.child": 1,  # code on trial, in a process of its own: what it raises is reported
    "rlm.events": 1,  # the caller's listener: what was paid for outlives it
}

# How many type errors a file may silence, each with its code. One more is a decision, taken here.
SILENCED: dict[str, int] = {}


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lines_in(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def comments_in(file: Path) -> Iterator[str]:
    source = io.StringIO(file.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type == tokenize.COMMENT:
            yield token.string


# ---------------------------------------------------------------- evaluation


EVALUATES = {"eval", "exec", "compile", "__import__", "literal_eval"}
# Writes functions from the field names of our own dataclasses, as `dataclasses` itself does.
GENERATES = {"executors/makers.py"}


@pytest.mark.case("K4-23")
def test_nothing_is_ever_evaluated() -> None:
    """Text from outside is data: no code of ours runs it, and none reads pickles."""
    found = {
        f"{name_of(file)}:{node.lineno}"
        for file in OURS
        if name_of(file) not in GENERATES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id in EVALUATES)
        or (isinstance(node, ast.Import) and "pickle" in {alias.name for alias in node.names})
        or (isinstance(node, ast.ImportFrom) and node.module in {"pickle", "ast"})
    }
    assert found == set()


# ---------------------------------------------------------------- size


def test_no_file_is_past_the_size_at_which_it_must_have_been_split() -> None:
    assert {name_of(f): n for f in ALL if (n := lines_in(f)) > FAILS} == {}


def test_files_that_should_be_split_soon_are_listed() -> None:
    """A warning would be an error here, so the list goes to the terminal: `-rA` shows it."""
    for file in ALL:
        if (n := lines_in(file)) > LISTED:
            sys.stdout.write(f"{name_of(file)}: {n} lines, split it before it has {FAILS}\n")


# ---------------------------------------------------------------- excepts and ignores


def broad_excepts(file: Path) -> int:
    """Count the handlers that catch everything and keep it; clean-up that raises on is none."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    return sum(is_broad(handler) and not raises_on(handler) for handler in handlers)


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    named = {part.id for part in ast.walk(handler.type) if isinstance(part, ast.Name)}
    return not named.isdisjoint({"Exception", "BaseException"})


def raises_on(handler: ast.ExceptHandler) -> bool:
    match handler.body[-1]:
        case ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.Name(id=name)):
            return name == handler.name
        case _:
            return False


def test_broad_excepts_stand_at_the_stated_boundaries_alone() -> None:
    assert {module_of(f): n for f in OURS if (n := broad_excepts(f))} == BROAD_EXCEPTS


def test_silenced_type_errors_are_counted_and_name_their_codes() -> None:
    silencing = re.compile(r"#\s*(type|pyright):\s*(ignore|basic|strict=false|\w+=false)")
    named = re.compile(r"#\s*(type|pyright):\s*ignore\[[\w, -]+\]")
    found = {
        name_of(file): [comment for comment in comments_in(file) if silencing.match(comment)]
        for file in OURS
    }
    assert [c for comments in found.values() for c in comments if not named.match(c)] == []
    assert {name: len(comments) for name, comments in found.items() if comments} == SILENCED


# ---------------------------------------------------------------- exports


def defined_in(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the classes and functions that a module defines; constants and aliases may be its own."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def taken_from_ours() -> Iterator[tuple[str, str, str]]:
    """Yield importing file, imported module and name for each `from ours import name`."""
    modules = {module_of(file) for file in OURS}
    for file in OURS:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                for alias in node.names:
                    if f"{node.module}.{alias.name}" not in modules:
                        yield name_of(file), node.module, alias.name


@pytest.mark.parametrize("module", [module_of(file) for file in OURS])
def test_each_public_name_of_a_module_stands_in_its_all(module: str) -> None:
    """Sorting is ruff's; an `__init__` that holds a docstring alone exports nothing."""
    folder = ROOT / module.replace(".", "/")
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    body = ast.parse(file.read_text(encoding="utf-8")).body
    if file.name == "__main__.py" or (file.name == "__init__.py" and len(body) <= 1):
        return
    loaded = import_module(module)
    exported: list[str] = list(loaded.__all__)
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if not hasattr(loaded, name)] == []
    if file.name != "__init__.py":
        public = {name for name in defined_in(body) if not name.startswith("_")}
        assert public <= set(exported), (
            f"neither exported nor private: {sorted(public - set(exported))}"
        )


def test_what_one_module_takes_from_another_stands_in_the_others_all() -> None:
    amiss = [
        f"{file} takes {name} from {module}"
        for file, module, name in taken_from_ours()
        if name not in import_module(module).__all__
    ]
    assert amiss == []


def test_init_files_re_export_and_do_nothing_else() -> None:
    """The roof's own, which loads lazily, is the one exception."""
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    for file in OURS:
        if file.name == "__init__.py" and file != ROOT / "rlm/__init__.py":
            body = ast.parse(file.read_text(encoding="utf-8")).body
            assert [ast.unparse(n) for n in body if not isinstance(n, kinds)] == [], name_of(file)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_packages_docstring_maps_modules_that_exist(package: str) -> None:
    loaded = import_module(package)
    named = re.findall(r"^- ((?:`\w+` ?)+):", loaded.__doc__ or "", re.MULTILINE)
    modules = [module for line in named for module in re.findall(r"`(\w+)`", line)]
    assert modules
    folder = ROOT / package
    missing = [m for m in modules if not any(folder.glob(f"{m}.py")) and not (folder / m).is_dir()]
    assert missing == []


# ---------------------------------------------------------------- words

# Written in pieces, so that this file does not hold what it looks for.
UNWANTED = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("home", "Users", "wor" + "k", "far" + "m", "root")) + r")/\w"
    r"|\.\./"
    + "shared|"
    + "DEVELOPERS"
    + r"\.md|file"
    + ":///|py"
    + r"pi\.org|files\.python"
    + "hosted"
)
TEXTS = {".py", ".md", ".toml", ".txt", ".in", ".cfg", ".ini", ".yaml", ".yml", ".sh", ""}


def texts() -> Iterator[Path]:
    tops = [*PACKAGES, "tests", "tools", "examples", "requirements", ".ci", "docs"]
    files = [file for top in tops for file in (ROOT / top).rglob("*")]
    for file in sorted([*files, *ROOT.glob("*")]):
        if file.is_file() and file.suffix in TEXTS and "__pycache__" not in file.parts:
            yield file


@pytest.mark.case("K5-14")
def test_no_source_holds_a_control_character() -> None:
    """Separators of keys are written as escapes, so that tools which read text read ours."""
    odd = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
    assert [name_of(file) for file in texts() if odd.search(file.read_bytes())] == []


def test_no_file_names_a_place_that_exists_on_one_machine_alone() -> None:
    found = {
        name_of(file): hit.group()
        for file in texts()
        if file.suffix != ".txt" or file.parent.name == "requirements"
        if (hit := UNWANTED.search(file.read_text(encoding="utf-8")))
    }
    assert found == {}
