"""A disk that fails: nothing is acknowledged that is not durable, and everybody is told."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from executors.errors import DiskFault, RunDirError
from executors.ids import ContentKey
from executors.journal import syncing
from executors.journal.journal import RunJournal
from executors.messages import ModelReply
from tests.executors.journals import FOUND, SCOPE, file_call, key, opened

pytestmark = pytest.mark.anyio


async def refused(journal: RunJournal, call: ContentKey, reply: ModelReply | None = None) -> None:
    with pytest.raises(DiskFault):
        await file_call(journal, call, *([] if reply is None else [reply]))


def all_refused(journal: RunJournal) -> None:
    """Nothing is taken any more."""
    with pytest.raises(DiskFault, match="cannot be written"):
        journal.intent(key(9), tokens=1, usd=None)
    with pytest.raises(DiskFault):
        journal.note(SCOPE, bytes(16), [1])
    with pytest.raises(DiskFault):
        journal.void(key(9), "")


# ---------------------------------------------------------------- no room


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file grow past 4,000 bytes: the system then writes half a line, and no more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_what_finds_no_room_is_not_acknowledged(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal = RunJournal.open(tmp_path)
    request.getfixturevalue("small_files")
    acknowledged: list[int] = []

    async def on() -> None:
        for n in range(1_000):
            await file_call(journal, key(n))
            acknowledged.append(n)

    with pytest.raises(DiskFault, match="cannot be written") as fault:
        await on()
    assert acknowledged
    assert journal.segment in str(fault.value)
    all_refused(journal)
    await journal.aclose()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    async with opened(tmp_path) as journal:
        assert all(journal.find(key(n)) == FOUND for n in acknowledged)
        assert [warning for warning in journal.warnings if "half a line" in warning]


FULL = """
import asyncio, sys
from pathlib import Path
from executors.errors import DiskFault
from executors.journal.journal import RunJournal
from executors.messages import ModelReply
from tests.executors.journals import REPLY, file_call, key

async def main():
    journal = RunJournal.open(Path(sys.argv[1]))
    n = 0
    try:
        while True:
            await file_call(journal, key(n), REPLY if n % 7 else ModelReply(text="x" * 40_000, stop="end"))
            n += 1
    except DiskFault as fault:
        print(n, fault.what)
    await journal.aclose()

asyncio.run(main())
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB, where this process may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only the superuser may mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def test_a_full_disk_ends_in_a_clear_error_and_loses_nothing(full_disk: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(full_disk)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    count, what = ran.stdout.strip().split(" ", 1)
    assert int(count) > 10
    assert what == "the journal of the run cannot be written: No space left on device"
    _fill(full_disk / "rest")
    with pytest.raises(RunDirError, match=r"(?s)full.*make room"):
        RunJournal.open(full_disk)
    subprocess.run(["mount", "-o", "remount,size=8m", str(full_disk)], check=True)
    async with opened(full_disk) as journal:
        assert all(journal.find(key(n)) is not None for n in range(int(count)))


def _fill(path: Path) -> None:
    """Take what a disk has left: whether an index still fits beside long answers is a matter of luck."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A run directory that cannot be written, also not by the superuser where this may be had."""
    directory = tmp_path / "run"
    directory.mkdir()
    bind = ["mount", "--bind", str(directory), str(directory)]
    if os.geteuid():
        directory.chmod(0o500)
        yield directory
        directory.chmod(0o700)
        return
    if subprocess.run(bind, check=False, capture_output=True).returncode:
        pytest.skip("the superuser may not mount here, and writes everywhere")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(directory)], check=True)
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


async def test_a_read_only_directory_is_refused(read_only: Path) -> None:
    with pytest.raises(RunDirError, match=r"(?s)index of the run cannot be made.*local disk"):
        RunJournal.open(read_only)
    worker = RunJournal.open(read_only, index=False)
    await refused(worker, key(1))
    all_refused(worker)
    await worker.aclose()


# ---------------------------------------------------------------- a disk that lies


async def test_a_failed_commit_is_told_to_all_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(0))

        def broken(fd: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(syncing, "_sync", broken)
        async with anyio.create_task_group() as group:
            for n in range(1, 9):
                group.start_soon(refused, journal, key(n))
        all_refused(journal)


async def test_a_blob_that_cannot_be_written_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blobs").write_bytes(b"no folder")
    async with opened(tmp_path) as journal:
        await refused(journal, key(1), ModelReply(text="x" * 40_000, stop="end"))
        all_refused(journal)


async def test_a_write_that_takes_a_part_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def reluctant(fd: int, data: bytes) -> int:
        return write(fd, data[:7])

    monkeypatch.setattr(os, "write", reluctant)
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        await file_call(journal, key(2))
    monkeypatch.undo()
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2))) == (FOUND, FOUND)


async def test_what_is_left_at_the_end_and_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = RunJournal.open(tmp_path)
    await file_call(journal, key(1))
    journal.note(SCOPE, bytes(16), [1])

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFault, match="No space"):
        await journal.aclose()
    monkeypatch.undo()
    await journal.aclose()


async def test_a_commit_takes_all_that_is_written_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 answers of one turn share a commit; the other one is that of the end."""
    synced: list[int] = []
    monkeypatch.setattr(syncing, "_sync", synced.append)
    async with opened(tmp_path) as journal, anyio.create_task_group() as group:
        for n in range(64):
            group.start_soon(file_call, journal, key(n))
    assert len(synced) == 2
