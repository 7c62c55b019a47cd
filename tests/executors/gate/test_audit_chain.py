"""What the chain of an audit tells: lines that were changed, removed or moved, and what it cannot.

Each fault is made in a real file, line by line, as somebody with an editor would.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from executors.clock import VirtualClock
from executors.gate.audit.audit import Audit, RunIds
from executors.gate.audit.redactor import Redactor
from executors.gate.audit.verifying import Chains, verify

LINES = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An audit of two writers, taking turns: the first has the even lines (from 0)."""
    file = tmp_path / "audit.jsonl"
    first, second = writer(file, "first"), writer(file, "second")
    for number in range(LINES // 2):
        first.write("gate", aid=f"a{number}")
        second.call(None, tokens=number, usd=Decimal(0), unpriced=None)
        second.flush()
    return file


def writer(path: Path, name: str) -> Audit:
    return Audit(
        path, run=RunIds(run=name), clock=VirtualClock(), redactor=Redactor(environment={})
    )


def edited(path: Path, change: Callable[[list[bytes]], None]) -> Chains:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
    return verify(path)


def kinds(chains: Chains) -> list[tuple[str, int]]:
    return [(fault.kind, fault.number) for fault in chains.faults]


def test_lines_that_nobody_touched_fit(path: Path) -> None:
    chains = verify(path)
    assert chains.consistent
    assert chains.lines == LINES
    assert sorted(name.partition("/")[0] for name in chains.heads) == ["first", "second"]


@pytest.mark.parametrize("line", range(LINES))
def test_a_changed_line_is_named_also_the_last_one(path: Path, line: int) -> None:
    def change(lines: list[bytes]) -> None:
        assert lines[line] != lines[line].replace(b'"spawn_depth":0', b'"spawn_depth":9')
        lines[line] = lines[line].replace(b'"spawn_depth":0', b'"spawn_depth":9')

    assert kinds(edited(path, change)) == [("changed", line + 1)]


@pytest.mark.parametrize("line", range(LINES - 2))
def test_a_removed_line_is_missed_where_the_next_of_its_writer_stands(
    path: Path, line: int
) -> None:
    def change(lines: list[bytes]) -> None:
        del lines[line]

    chains = edited(path, change)
    assert kinds(chains) == [("removed", line + 2)]
    assert "1 line(s) before it are missing" in chains.faults[0].what


@pytest.mark.parametrize("line", range(LINES - 2))
def test_lines_in_another_order_are_told(path: Path, line: int) -> None:
    def change(lines: list[bytes]) -> None:
        lines[line], lines[line + 2] = lines[line + 2], lines[line]

    assert kinds(edited(path, change)) == [("moved", line + 3)]


def test_a_line_that_stands_twice_is_told(path: Path) -> None:
    def change(lines: list[bytes]) -> None:
        lines.append(lines[0])

    assert kinds(edited(path, change)) == [("repeated", LINES + 1)]


def test_a_changed_link_does_not_fit_and_neither_does_what_comes_behind_it(path: Path) -> None:
    def change(lines: list[bytes]) -> None:
        lines[2] = lines[2][:-35] + b"0" * 32 + lines[2][-3:]

    assert kinds(edited(path, change)) == [("changed", 3), ("changed", 5)]


def test_a_line_without_a_link_is_no_line(path: Path) -> None:
    def change(lines: list[bytes]) -> None:
        lines.insert(0, b'{"ts":"2026-01-01T00:00:00Z","phase":"topup","new_cap":"1000"}\n')

    chains = edited(path, change)
    assert chains.torn == (1,)
    assert chains.lines == LINES


def test_a_line_without_a_number_is_foreign(path: Path) -> None:
    def change(lines: list[bytes]) -> None:
        lines.append(b'{"phase":"topup","link":"' + b"0" * 32 + b'"}\n')

    assert kinds(edited(path, change)) == [("foreign", LINES + 1)]


def test_last_lines_that_are_cut_off_are_not_missed_without_a_published_head(path: Path) -> None:
    head = next(link for name, link in verify(path).heads.items() if name.startswith("first"))

    def change(lines: list[bytes]) -> None:
        del lines[-2:]

    assert edited(path, change).consistent
    (fault,) = verify(path, heads=[head.upper()]).faults
    assert fault.kind == "unknown-head"
    assert "cut off, or made anew" in fault.what


def test_a_published_head_stays_known_when_more_lines_come(path: Path) -> None:
    heads = verify(path).heads.values()
    writer(path, "third").write("gate")
    assert verify(path, heads=list(heads)).consistent


def test_an_audit_that_was_made_anew_fits_and_its_published_head_is_unknown(path: Path) -> None:
    """Consistent is not authenticated."""
    heads = list(verify(path).heads.values())
    path.unlink()
    writer(path, "first").write("gate", aid="another story")
    assert verify(path).consistent
    assert not verify(path, heads=heads).consistent


def test_thousands_of_missing_lines_are_one_fault_in_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    one = writer(file, "one")
    for number in range(5_000):
        one.call(None, tokens=number, usd=Decimal(0), unpriced=None)
    one.close()

    def change(lines: list[bytes]) -> None:
        del lines[100:2_100]

    assert kinds(edited(file, change)) == [("removed", 101)]
