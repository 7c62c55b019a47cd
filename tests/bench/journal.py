"""The journal: what it adds to a call, what it takes on disk, and how long a resume reads."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import ContentKey, NodeId, content_key
from executors.journal.journal import RunJournal
from executors.journal.records import NOTE_KEY_BYTES, Journal, NoJournal, Paid
from executors.messages import Message, ModelReply, ModelRequest
from executors.models.fakes.scripted import ScriptedModel
from executors.replies import JsonValue
from executors.usage import Usage
from tests.bench.row import Row

__all__ = ["rows"]

_FOLDER = Path(__file__).resolve().parents[2] / ".bench"
_ROUNDS = 5
_WINDOW = 8
_TEXT = '{"1":"no","2":"no","3":"yes","4":"no","5":"no","6":"no","7":"unsure","8":"no"}'
_REPLY = ModelReply(text=_TEXT, stop="end", usage=Usage(input=800, output=60), model="bench")
_PAID = Paid(tokens=860, usd=Decimal("0.000156"), attempts=1)
_SCOPE = content_key("bench")
_VALUES: list[JsonValue] = [1, 1, 2, 1, 1, 1, [3, "it does not say"], 1]


@contextmanager
def _run() -> Generator[Path]:
    """A run directory on the disk that the sources lie on; a folder in memory would flatter."""
    _FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        yield Path(folder)


def _sync_ms(directory: Path) -> float:
    """Return what one fdatasync of a line costs on this disk."""
    fd = os.open(directory / "probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    times: list[float] = []
    for _ in range(50):
        os.write(fd, b"x" * 300)
        started = time.perf_counter()
        os.fdatasync(fd)
        times.append(time.perf_counter() - started)
    os.close(fd)
    return sorted(times)[len(times) // 2] * 1e3


# ---------------------------------------------------------------- a call


async def _file(journal: Journal, calls: int, in_flight: int, salt: str) -> float:
    """File calls as the pipeline and the scan do; return CPU seconds a call of the loop's thread."""
    keys = [content_key(f"{salt} {n}") for n in range(calls)]
    contents = [os.urandom(_WINDOW * NOTE_KEY_BYTES) for _ in range(calls)]
    pending = iter(zip(keys, contents, strict=True))

    async def worker() -> None:
        for call, content in pending:
            journal.find(call)
            journal.intent(call, tokens=1_200, usd=Decimal("0.0003"))
            await asyncio.sleep(0)
            await journal.answer(call, _REPLY, _PAID)
            journal.note(_SCOPE, content, _VALUES, call=call)

    started = time.thread_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return (time.thread_time() - started) / calls


async def _alone(in_flight: int, calls: int = 4_000) -> Row:
    ours: list[float] = []
    floors: list[float] = []
    for n in range(_ROUNDS):
        with _run() as directory:
            floors.append(await _file(NoJournal(), calls, in_flight, f"{n}"))
            journal = RunJournal.open(directory)
            ours.append(await _file(journal, calls, in_flight, f"{n}"))
            await journal.aclose()
    return Row(
        name=f"intent, answer and note of {_WINDOW}, {in_flight} in flight",
        ours=(min(ours) - min(floors)) * 1e6,
        unit="us",
        bar=20,
        note="of the loop's thread; the disk is waited for by another",
    )


def _ignore(event: Event) -> None:
    del event


async def _ask(journal: Journal, requests: list[ModelRequest], in_flight: int) -> float:
    """Return CPU seconds a call of the process, through the whole pipeline."""
    model = ScriptedModel(lambda _: _REPLY)
    caps = CapsAllowance(Caps(calls=10**9, tokens=10**15), SystemClock())
    calls = Calls(allowance=caps, emit=_ignore, concurrency=in_flight, journal=journal)
    pending = iter(requests)

    async def worker() -> None:
        for request in pending:
            answer = await calls.ask(model, request, role="judge", node=NodeId("root"))
            journal.note(_SCOPE, os.urandom(_WINDOW * NOTE_KEY_BYTES), _VALUES, call=answer.key)

    started = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return (time.process_time() - started) / len(requests)


async def _bare(requests: list[ModelRequest]) -> float:
    model = ScriptedModel(lambda _: _REPLY)
    started = time.process_time()
    for request in requests:
        await model.generate(request)
    return (time.process_time() - started) / len(requests)


async def _pipeline(in_flight: int, count: int = 4_000) -> Row:
    ours: list[float] = []
    floors: list[float] = []
    sync = 0.0
    for n in range(_ROUNDS):
        requests = [
            ModelRequest(
                messages=(Message(role="user", content=f"{n} {call} " + "x" * 600),), max_tokens=256
            )
            for call in range(count)
        ]
        with _run() as directory:
            sync = _sync_ms(directory)
            floors.append(await _bare(requests))
            journal = RunJournal.open(directory)
            ours.append(await _ask(journal, requests, in_flight))
            await journal.aclose()
    return Row(
        name=f"overhead a call, zero latency, {in_flight} in flight, journal on",
        ours=(min(ours) - min(floors)) * 1e6,
        unit="us",
        bar=60 if in_flight > 1 else 300,  # a lone call has a commit, and two threads, to itself
        note=f"gate, events and notes on, both threads; one fdatasync takes {sync:.2f} ms",
    )


# ---------------------------------------------------------------- a resume


async def _resume(calls: int = 50_000) -> list[Row]:
    with _run() as directory:
        journal = RunJournal.open(directory)
        await _file(journal, calls, 256, "resume")
        await journal.aclose()
        (segment,) = (directory / "journal").iterdir()
        size = segment.stat().st_size / calls
        seconds: list[float] = []
        for _ in range(3):
            for part in directory.glob("index.sqlite*"):
                part.unlink()
            started = time.perf_counter()
            journal = RunJournal.open(directory)
            seconds.append(time.perf_counter() - started)
            await journal.aclose()
        started = time.perf_counter()
        journal = RunJournal.open(directory)
        again = time.perf_counter() - started
        notes = _notes_seconds(journal)
        found = _find_seconds(journal, calls)
        await journal.aclose()
    answers = len(_TEXT)
    return [
        Row(
            name=f"journal bytes a call with {_WINDOW} notes",
            ours=size,
            unit="B",
            bar=answers + 350 + 100 * _WINDOW,
            note=f"{answers} of them are the answer",
        ),
        Row(
            name=f"index of {calls:,} calls and {calls * _WINDOW:,} notes made again",
            ours=min(seconds),
            unit="s",
            bar=3,
            note=f"opened with a good index: {again * 1e3:.0f} ms",
        ),
        Row(name="200,000 notes read", ours=notes, unit="s", bar=0.5),
        Row(name="an answer of an earlier session found", ours=found * 1e6, unit="us", bar=100),
    ]


def _notes_seconds(journal: RunJournal) -> float:
    started = time.perf_counter()
    for n, _ in enumerate(journal.notes(_SCOPE), start=1):
        if n == 200_000:
            break
    return time.perf_counter() - started


def _find_seconds(journal: RunJournal, calls: int) -> float:
    keys: list[ContentKey] = [content_key(f"resume {n}") for n in range(0, calls, 10)]
    started = time.perf_counter()
    assert all(journal.find(call) for call in keys)
    return (time.perf_counter() - started) / len(keys)


def rows() -> list[Row]:
    """Measure the journal."""
    found = [asyncio.run(_alone(in_flight)) for in_flight in (16, 64, 256)]
    found += [asyncio.run(_pipeline(in_flight)) for in_flight in (1, 16, 64, 256)]
    return found + asyncio.run(_resume())
