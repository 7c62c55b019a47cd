"""A worker without a shared disk: what is acknowledged to it is durable at the coordinator."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from executors.errors import DiskFault, InternalError, RateLimited
from executors.journal.journal import RunJournal
from executors.journal.records import Filed, Journal
from executors.journal.stream import StreamJournal
from executors.messages import ModelReply
from tests.executors.journals import (
    FOUND,
    PAID,
    SCOPE,
    file_call,
    key,
    notes_of,
    opened,
    segments,
)

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def streaming(send: Callable[[bytes], Awaitable[None]]) -> AsyncGenerator[StreamJournal]:
    journal = StreamJournal(send)
    async with anyio.create_task_group() as group:
        group.start_soon(journal.run)
        try:
            yield journal
        finally:
            await journal.aclose()


class Wire:
    """Takes batches one after another, each when it is let."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.busy = 0
        self.gate = anyio.Event()
        self.gate.set()

    async def send(self, lines: bytes) -> None:
        self.busy += 1
        assert self.busy == 1
        self.batches.append(lines)
        await self.gate.wait()
        self.busy -= 1


async def test_what_a_worker_files_is_found_at_the_coordinator(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        async with streaming(journal.take) as worker:
            await file_call(worker, key(1))
            assert journal.find(key(1)) == worker.find(key(1)) == FOUND
            worker.intent(key(2), tokens=300, usd=None)
            worker.failed(key(2), RateLimited("429"), PAID)
            await file_call(worker, key(3))
            worker.void(key(3), "empty")
            worker.note(SCOPE, bytes(16), ["yes"], call=key(1))
            assert worker.find(key(3)) is None
        assert journal.find(key(3)) is None
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2))) == (FOUND, None)
        assert (journal.find(key(3)), notes_of(journal)) == (None, {bytes(16): "yes"})
        assert (journal.spent.calls, journal.spent.lost, journal.warnings) == (3, 0, ())


async def test_an_answer_is_acknowledged_when_its_batch_was_taken() -> None:
    wire, done = Wire(), list[int]()
    wire.gate = anyio.Event()

    async def file(n: int) -> None:
        await file_call(worker, key(n))
        done.append(n)

    async with streaming(wire.send) as worker, anyio.create_task_group() as group:
        group.start_soon(file, 0)
        await anyio.wait_all_tasks_blocked()
        for n in range(1, 9):
            group.start_soon(file, n)
        await anyio.wait_all_tasks_blocked()
        assert (done, len(wire.batches)) == ([], 1)
        wire.gate.set()
        await anyio.wait_all_tasks_blocked()
        assert sorted(done) == list(range(9))
        assert len(wire.batches) == 2
        assert wire.batches[1].count(b"\n") == 16


async def test_notes_wait_for_what_must_be_sent(tmp_path: Path) -> None:
    wire = Wire()
    async with streaming(wire.send) as worker:
        worker.note(SCOPE, bytes(16), [1])
        await anyio.wait_all_tasks_blocked()
        assert wire.batches == []
        worker.intent(key(1), tokens=1, usd=None)
        await anyio.wait_all_tasks_blocked()
        assert wire.batches[0].count(b"\n") == 2
        worker.note(SCOPE, bytes(16), [2])
    assert len(wire.batches) == 2


@pytest.mark.parametrize("fault", [ConnectionResetError("gone"), DiskFault("full")])
async def test_a_coordinator_that_takes_no_more_stops_the_worker(fault: Exception) -> None:
    async def send(lines: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        raise fault

    async with streaming(send) as worker:
        for _ in range(2):
            with pytest.raises(DiskFault, match=r"the coordinator takes no lines.*(gone|full)"):
                await file_call(worker, key(1))
        with pytest.raises(DiskFault):
            worker.note(SCOPE, bytes(16), [1])


async def test_who_stops_waiting_loses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal, streaming(journal.take) as worker:
        with anyio.move_on_after(0):
            await file_call(worker, key(1))
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == FOUND


@pytest.mark.case("S44")
async def test_a_long_answer_of_a_worker_lies_in_a_blob(tmp_path: Path) -> None:
    long = ModelReply(text="x" * 5_000_000, stop="end")
    async with opened(tmp_path) as journal, streaming(journal.take) as worker:
        await file_call(worker, key(1), long)
        assert journal.find(key(1)) == Filed(reply=long, usd=PAID.usd)
    assert segments(tmp_path)[0].stat().st_size < 64 * 1024
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == Filed(reply=long, usd=PAID.usd)


@pytest.mark.parametrize("lines", [b"half", b"[]\n", b'{"a":1}\n', b'{"z":1}\nhalf', b"\n"])
async def test_what_is_no_line_is_taken_from_nobody(tmp_path: Path, lines: bytes) -> None:
    async with opened(tmp_path) as journal:
        with pytest.raises(InternalError, match="no line of a journal"):
            await journal.take(lines)
    assert not (tmp_path / "journal").exists()


async def test_many_workers_stream_to_one_coordinator(tmp_path: Path) -> None:
    async def work(first: int, journal: RunJournal) -> None:
        async with streaming(journal.take) as worker, anyio.create_task_group() as group:
            for n in range(first, first + 50):
                group.start_soon(file_call, worker, key(n))

    async with opened(tmp_path) as journal, anyio.create_task_group() as group:
        for first in range(0, 400, 50):
            group.start_soon(work, first, journal)
    async with opened(tmp_path) as journal:
        assert all(journal.find(key(n)) == FOUND for n in range(400))
        assert (journal.spent.calls, journal.spent.lost) == (400, 0)


async def test_a_worker_remembers_its_last_answers() -> None:
    async with streaming(Wire().send) as worker:
        protocol: Journal = worker
        for n in range(4_100):
            with anyio.move_on_after(0):
                await worker.answer(key(n), FOUND.reply, PAID)
        assert (protocol.find(key(0)), protocol.find(key(4_099))) == (None, FOUND)
        assert notes_of(protocol) == {}
