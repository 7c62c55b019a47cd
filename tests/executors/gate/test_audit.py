"""The lines of an audit: what each has, how long it may be, and that none is allowed unwritten."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.clock import VirtualClock
from executors.errors import ConfigError, DiskFault
from executors.gate.audit.audit import LONGEST, Audit, RunIds
from executors.gate.audit.reading import AuditLine, Torn, lines, read
from executors.gate.audit.redactor import Redactor
from executors.gate.audit.verifying import verify
from executors.ids import NodeId
from executors.messages import CallRole

NODE = NodeId("root.2.0")
IDS = RunIds(run="child-run", parent="parent-run", root="root-run", depth=2)


@dataclass(frozen=True)
class Asked:
    role: CallRole = "judge"
    node: NodeId = NODE
    model: str = "scripted:yes"


def audit(path: Path | None = None) -> Audit:
    return Audit(path, run=IDS, clock=VirtualClock(), redactor=Redactor(environment={}))


def call(book: Audit, *, overrun: bool = False) -> None:
    book.call(Asked(), tokens=7, usd=Decimal("0.5"), unpriced=False, overrun=overrun)


# ---------------------------------------------------------------- what each has


@pytest.mark.case("G-184")
def test_each_line_says_when_by_whom_and_what(tmp_path: Path) -> None:
    book = audit(tmp_path / "audit.jsonl")
    book.write("gate", aid="1", decision="allow")
    call(book)
    book.write("terminate")
    book.close()
    found = list(read(tmp_path / "audit.jsonl"))
    assert [line.phase for line in found] == ["gate", "call", "terminate"]
    assert [line.seq for line in found] == [0, 1, 2]
    for line in found:
        assert line.fields["ts"] == "2026-01-01T00:00:00Z"
        assert line.fields["run_id"] == "child-run"
        assert line.fields["parent_run_id"] == "parent-run"
        assert line.fields["spawn_depth"] == 2
        assert len(line.text("link")) == 32


def test_the_line_of_a_call_says_whose_it_was_and_what_it_drew() -> None:
    book = audit()
    call(book, overrun=True)
    book.call(None, calls=3, tokens=9, usd=Decimal(0), unpriced=None)
    first, many = book.entries
    asked = {"role": "judge", "node": "root.2.0", "model": "scripted:yes"}
    drawn = {"calls": 1, "tokens": 7, "usd": "0.5", "unpriced": False, "overrun": True}
    assert first.items() >= (asked | drawn).items()
    assert many.items() >= {"role": None, "calls": 3, "usd": "0", "unpriced": None}.items()


def test_names_in_the_line_of_a_call_are_bounded_and_without_secrets() -> None:
    book = audit()
    book.call(
        Asked(model="https://me:abcdefgh@example.com/" + "é" * 500),
        tokens=1,
        usd=Decimal(0),
        unpriced=None,
    )
    (entry,) = book.entries
    assert "abcdefgh" not in str(entry)
    assert len(str(entry["model"]).encode()) <= 300


@pytest.mark.case("G-201")
def test_without_a_file_lines_are_kept_in_memory() -> None:
    book = audit()
    book.write("gate", aid="1")
    call(book)
    assert [entry["phase"] for entry in book.entries] == ["gate", "call"]
    assert book.path is None


def test_lines_of_calls_wait_for_the_flush_and_stay_in_order(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    call(book)
    assert path.read_bytes() == b""
    book.flush()
    assert len(list(read(path))) == 1
    call(book)
    book.write("gate")
    assert [line.phase for line in read(path)] == ["call", "call", "gate"]


def test_a_process_learns_its_family_from_its_environment() -> None:
    told = RunIds.from_environment(IDS.for_child(), now=VirtualClock().now(), run="grandchild")
    assert told == RunIds(run="grandchild", parent="child-run", root="root-run", depth=3)
    alone = RunIds.from_environment({}, now=VirtualClock().now())
    assert (alone.parent, alone.root, alone.depth) == (None, None, 0)


@pytest.mark.parametrize("told", ["x", "-1", "1.0", "99999", "٣"])
def test_a_depth_that_cannot_be_read_is_no_zero(told: str) -> None:
    with pytest.raises(ConfigError, match="no depth"):
        RunIds.from_environment({"RLM_SPAWN_DEPTH": told}, now=VirtualClock().now())


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "é"])
def test_an_id_that_could_break_a_line_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no id of a run"):
        RunIds(run=name)


# ---------------------------------------------------------------- how long it may be


_LONG: dict[str, dict[str, object]] = {
    "command": {"action": {"type": "bash", "cmd": "echo " + "x" * 5_000}},
    "keys": {"action": {"type": "bash", **{f"key{i}": "v" * 190 for i in range(200)}}},
    "long keys": {"action": {"type": "bash", **{f"{i}" * 900: 1 for i in range(9)}}},
    "reason": {"action": {"type": "bash"}, "reason": "why " * 5_000},
    "wide characters": {"action": {"type": "bash", "cmd": "漢🙂" * 3_000}},
    "controls": {"action": {"type": "bash", "cmd": "\x01\x7f\u2028" * 3_000}},
    "nested": {"action": {"type": "bash"}, "output": {"a": [{"b": ["y" * 99] * 99}] * 99}},
    "all long": {
        "action": {"type": "bash", "tool": "\x01" * 900, "cmd": "\x01" * 9_000},
        "classification": "\x01" * 900,
        "dimension": "\x01" * 900,
        "spent": "\x01" * 900,
        "cap": "\x01" * 900,
        "reason": "\x01" * 900,
    },
}


@pytest.mark.case("G-186")
@pytest.mark.case("G-071")
@pytest.mark.parametrize("fields", _LONG.values(), ids=_LONG)
def test_a_long_line_is_cut_and_keeps_what_decides_and_costs(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    result = {"text": "z" * 4_000, "cost_usd": "0.125", "tokens": 42, "pricing": "priced"}
    kept = {"aid": "deadbeef", "decision": "deny", "severity": "action", "rule": "bash.allow"}
    book.write("record", **fields, **kept, result={**result, "counts": {"writes": 2}})
    raw = path.read_bytes()
    assert len(raw) <= LONGEST
    assert raw.count(b"\n") == 1
    line = json.loads(raw)
    assert line["_truncated"] is True
    assert line.items() >= kept.items()
    assert line["action"]["type"] == "bash"
    del result["text"]
    assert line["result"].items() >= {**result, "counts": {"writes": 2}}.items()
    assert verify(path).consistent


def test_a_short_line_is_not_marked() -> None:
    book = audit()
    book.write("gate", action={"type": "bash", "cmd": "ls"})
    assert "_truncated" not in book.entries[0]


def test_more_counts_than_a_line_holds_go_into_lines_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    # As long as names get.
    counts = {f"{i:02}" + "\x01" * 98: i for i in range(64)}
    audit(path).write("record", action={"type": "x"}, aid="7", result={"counts": counts})
    found = list(read(path))
    assert all(len(line.raw) <= LONGEST for line in found)
    assert {line.phase for line in found[1:]} == {"counts"}
    held: dict[str, int] = {}
    for line in found:
        part: Any = line.fields["result"] if line.phase == "record" else line.fields
        held |= part["counts"]
    assert held == counts


@pytest.mark.case("G-199")
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_line_is_json_whatever_a_result_holds(number: float) -> None:
    book = audit()
    book.write("record", result={"score": number})
    (entry,) = book.entries
    assert entry["result"] == {"score": None}
    assert entry["_not_finite"] is True


_ANY = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=200)
@given(action=_ANY, result=_ANY, reason=_ANY, stretch=st.integers(1, 2_000))
def test_any_line_is_one_bounded_line_of_json(
    action: object, result: object, reason: object, stretch: int
) -> None:
    book = audit()
    long = reason * stretch if isinstance(reason, str) else reason
    book.write("record", action=action, result=result, reason=long, aid="a")
    book.write("gate", action=[action], more={"result": result}, reason=long, rule="r")
    for entry in book.entries:
        assert entry["phase"] in {"record", "gate", "counts"}
    with book._lock:  # its bytes
        raws = list(book._memory)
    assert all(len(raw) <= LONGEST and raw.count(b"\n") == 1 for raw in raws)


# ---------------------------------------------------------------- the file


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "audit.jsonl"
    audit(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch(mode=0o644)
    path.chmod(0o644)
    audit(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.case("G-200")
def test_a_place_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "file" / "x", tmp_path / "link", tmp_path / "pipe"):
        with pytest.raises(DiskFault, match="audit cannot be written"):
            audit(place)


@contextmanager
def disk_of(size: int) -> Generator[None]:
    """Let files grow no further than that."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.case("G-200")
def test_a_full_disk_is_said_and_nothing_is_written_after_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    book.write("gate", aid="1")
    size = path.stat().st_size
    with disk_of(size + 50), pytest.raises(DiskFault, match=r"only 50 of [\d,]+ bytes"):
        book.write("gate", aid="2")
    with pytest.raises(DiskFault):
        book.write("gate", aid="3")
    assert path.stat().st_size == size + 50


def test_a_torn_end_is_skipped_and_never_joined_to_the_next_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for cut in (1, 50, 200):
        with path.open("ab") as file:
            start = file.tell()
        audit(path).write("gate", aid="killed")
        os.truncate(path, start + cut)
    audit(path).write("gate", aid="next")
    found = list(lines(path))
    assert [type(line) for line in found] == [Torn, Torn, Torn, AuditLine]
    assert [line.text("aid") for line in read(path)] == ["next"]
    assert verify(path).consistent


def test_half_a_line_of_another_writer_that_dies_meanwhile_is_not_joined(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    book.write("gate", aid="1")
    with path.open("ab") as other:
        other.write(b'{"ts":"2026')
    book.write("gate", aid="2")
    assert [line.text("aid") for line in read(path)] == ["1", "2"]


def test_a_line_right_behind_half_a_one_is_found_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit(path).write("gate", aid="1", reason='a "quoted" {"ts":"x"')
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + whole)
    torn, line = lines(path)
    assert isinstance(torn, Torn)
    assert isinstance(line, AuditLine)
    assert line.raw == whole


def test_what_is_far_too_long_is_skipped_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"ts":"' + b"x" * 3_000_000 + b"\n")
    audit(path).write("gate", aid="1")
    torn, line = lines(path)
    assert torn == Torn(number=1, size=3_000_008)
    assert isinstance(line, AuditLine)
    assert line.number == 2


def test_a_file_that_somebody_deletes_lets_nothing_through(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    book.write("gate")
    path.unlink()
    with pytest.raises(DiskFault, match="deleted"):
        book.write("gate")


def test_nothing_is_written_once_it_is_closed(tmp_path: Path) -> None:
    book = audit(tmp_path / "audit.jsonl")
    book.close()
    with pytest.raises(DiskFault, match="closed"):
        book.write("gate")


def test_threads_share_a_writer_without_mixing_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    book = audit(path)

    def work(name: int) -> None:
        for number in range(50):
            book.write("gate", aid=f"{name}-{number}")
            call(book)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    book.close()
    found = list(read(path))
    assert len(found) == 400
    assert [line.seq for line in found] == list(range(400))
    assert verify(path).consistent


@pytest.mark.case("G-185")
def test_processes_that_append_at_once_keep_their_lines_whole(tmp_path: Path) -> None:
    """Forked children are writers of their own: their parent's waiting lines stay the parent's."""
    path = tmp_path / "audit.jsonl"
    book = audit(path)
    call(book)  # waits while they are forked
    children = [_forked(book, str(name)) for name in range(3)]
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    book.close()
    found = list(lines(path))
    assert all(isinstance(line, AuditLine) for line in found)
    assert len(found) == 3 * 200 + 1
    assert len({line.writer for line in read(path)}) == 4
    assert verify(path).consistent


def _forked(book: Audit, name: str) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for number in range(100):
            call(book)
            book.write("gate", aid=f"{name}-{number}", reason=name * 2_000)
        book.close()
        status = 0
    finally:
        os._exit(status)
