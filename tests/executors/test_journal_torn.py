"""What a crash leaves behind: half lines, damaged lines, calls of which nothing is known."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from executors.journal.journal import RunJournal
from executors.journal.reading import keep_bad, segment_files, whole_lines
from tests.executors.journals import (
    FOUND,
    SCOPE,
    file_call,
    key,
    notes_of,
    opened,
    segments,
)

pytestmark = pytest.mark.anyio

# Files calls for ever; says each key once its answer is durable.
CHILD = """
import asyncio, sys
from pathlib import Path
from executors.journal.journal import RunJournal
from tests.executors.journals import file_call, key

async def worker(journal, numbers):
    for n in numbers:
        await file_call(journal, key(n))
        journal.note(key(-1), n.to_bytes(16, "big"), [n])
        print(n, flush=True)

async def main():
    journal = RunJournal.open(Path(sys.argv[1]), index=False)
    numbers = iter(range(int(sys.argv[2]), 10**9))
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(worker(journal, numbers))

asyncio.run(main())
"""
ROOT = Path(__file__).resolve().parents[2]


def acknowledged(directory: Path, seconds: float, first: int = 0) -> set[int]:
    """Run a child, kill it some time after its first answer, and return what it said."""
    command = [sys.executable, "-c", CHILD, str(directory), str(first)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = [said, *child.stdout]
    return {int(line) for line in lines if line.endswith(b"\n")}


@pytest.mark.case("S08", "K14-16", "K14-11")
async def test_an_answer_is_there_when_its_process_is_killed_right_after(tmp_path: Path) -> None:
    """At most the calls in flight, one a worker, are possibly paid and not there."""
    said: set[int] = set()
    for n, seconds in enumerate((0.0, 0.005, 0.02, 0.02)):
        said |= acknowledged(tmp_path, seconds, n * 1_000_000)
        async with opened(tmp_path) as journal:
            assert all(journal.find(key(one)) == FOUND for one in said)
            assert len(journal.lost) <= 8 * (n + 1)
            noted = {int.from_bytes(content) for content in notes_of(journal, key(-1))}
            assert len(said - noted) <= 16 * (n + 1)
    assert len(segments(tmp_path)) == 4


@pytest.mark.case("K14-5", "K14-7")
async def test_a_segment_that_was_cut_anywhere_keeps_all_its_whole_lines(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    async with opened(whole) as journal:
        await file_call(journal, key(0))
        journal.note(SCOPE, bytes(16), ["\n"])
    (segment,) = segments(whole)
    data = segment.read_bytes()
    for size in range(len(data) + 1):
        cut = tmp_path / "cut"
        shutil.rmtree(cut, ignore_errors=True)
        (cut / "journal").mkdir(parents=True)
        (cut / "journal" / segment.name).write_bytes(data[:size])
        kept = data[:size].rpartition(b"\n")[0].split(b"\n")
        async with opened(cut) as journal:
            kinds = [line[2:3] for line in kept]
            assert (journal.find(key(0)) is not None) is (b"a" in kinds)
            assert len(notes_of(journal)) == kinds.count(b"n")
            assert len(journal.lost) == kinds.count(b"i") - kinds.count(b"a")
            torn = data[:size].rpartition(b"\n")[2]
            assert len(journal.warnings) == bool(torn)
        assert segments(cut)[0].read_bytes() == data[: size - len(torn)]


@pytest.mark.case("K14-8", "K14-10")
@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\x00" * 100,
        b"{}",
        b"[]",
        b"null",
        b'{"a":',
        b"\xff\xfe",
        b'{"a":"00","p":[1,1],"x":"y"}',
        b'{"a":1,"p":[1,1],"x":"y"}',
        b'{"a":"%s","p":[1,1]}' % key(1).encode(),
        b'{"a":"%s","p":[],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[1.5,1],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[1,1,"NaN"],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[1,1,"many"],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[1,1],"b":"../../secret"}' % key(1).encode(),
        b'{"a":"%s","p":[-5,1],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[1,1,"-3"],"x":"y"}' % key(1).encode(),
        b'{"a":"%s","p":[18446744073709551615,1],"x":"y"}' % key(1).encode(),
        b'{"i":"%s","t":9223372036854775808}' % key(1).encode(),
        b'{"n":"\\ud800","k":"","v":[]}',
        b'{"n":"s","k":"","v":[],"c":"\\ud800"}',
        b'{"n":"s","k":"00","v":[1]}',
        b'{"n":"s","k":"","v":{}}',
        b'{"i":"%s"}' % key(1).encode(),
        b"[" * 100_000,
    ],
)
async def test_a_damaged_line_is_skipped_counted_and_kept_beside(
    tmp_path: Path, bad: bytes
) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(2))
    (segment,) = segments(tmp_path)
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(lines[0] + bad + b"\n" + lines[1])
    for _ in range(2):
        async with opened(tmp_path) as journal:
            assert journal.find(key(2)) == FOUND
            assert (journal.find(key(1)), journal.lost) == (None, ())
            if bad != b"{}":
                assert any("1 damaged line" in warning for warning in journal.warnings)
                assert segment.with_suffix(".bad").read_bytes() == bad + b"\n"
        (tmp_path / "index.sqlite").unlink()


async def test_a_line_of_a_newer_version_is_told_of(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
    with segments(tmp_path)[0].open("ab") as file:
        file.write(b'{"z":1}\n')
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == FOUND
        assert [w for w in journal.warnings if "newer version" in w]


async def test_a_living_process_keeps_its_half_line(tmp_path: Path) -> None:
    writer = RunJournal.open(tmp_path, index=False)
    await file_call(writer, key(1))
    (segment,) = segments(tmp_path)
    with segment.open("ab") as file:
        file.write(b"half")
    size = segment.stat().st_size
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.warnings) == (FOUND, ())
    assert segment.stat().st_size == size
    await writer.aclose()
    async with opened(tmp_path) as journal:
        assert len(journal.warnings) == 1
    assert segment.stat().st_size == size - 4


async def test_a_segment_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    segment = tmp_path / "journal" / "else-where-1-2.jsonl"
    segment.write_bytes(b"half")
    (tmp_path / "journal" / "notes.jsonl").write_bytes(b"no segment of ours")
    assert [file.host for file in segment_files(tmp_path / "journal")] == ["else-where"]
    async with opened(tmp_path) as journal:
        assert journal.warnings == ()
    assert segment.read_bytes() == b"half"


def test_lines_are_read_whatever_their_length(tmp_path: Path) -> None:
    lines = [b"a", b"", b"b" * 3_000_000, b"c" * (1 << 20), b"d"]
    path = tmp_path / "segment"
    path.write_bytes(b"\n".join(lines) + b"\n" + b"e" * 2_500_000)
    found = list(whole_lines(path))
    assert [line for _, line in found] == lines
    assert [at for at, _ in found] == [0, 2, 3, 3_000_004, 4_048_581]
    assert list(whole_lines(path, 4_048_581)) == [(4_048_581, b"d")]


def test_evidence_is_kept_once(tmp_path: Path) -> None:
    for _ in range(2):
        keep_bad(tmp_path / "s.jsonl", [b"x", b"y"])
    assert (tmp_path / "s.bad").read_bytes() == b"x\ny\n"
    keep_bad(tmp_path / "missing" / "s.jsonl", [b"x"])
