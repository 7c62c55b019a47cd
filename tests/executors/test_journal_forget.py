"""Contents can be erased from the journal of a run; what was paid stays paid."""

import errno
import os
from pathlib import Path

import pytest

from executors.errors import AuthError, OutputError, RunDirError
from executors.ids import content_key
from executors.journal.forget import Forgotten, forget
from executors.journal.journal import RunJournal
from executors.messages import ModelReply
from executors.usage import Usage
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

CANARY = "the patient's name"


def digest(n: int) -> bytes:
    return n.to_bytes(16, "big")


def telling(length: int = 0) -> ModelReply:
    return ModelReply(text=f"1: {CANARY}" + "x" * length, stop="end", usage=Usage(output=5))


def holds(directory: Path) -> list[Path]:
    """Return the files that hold what was to be erased."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path for path in files if CANARY.encode() in path.read_bytes()]


async def test_a_content_is_erased_with_the_answers_it_was_judged_in(tmp_path: Path) -> None:
    other = content_key("other")
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), telling())
        journal.note(SCOPE, digest(1) + digest(2), [CANARY, "two"], call=key(1))
        await file_call(journal, key(2), telling(50_000))
        journal.note(other, digest(1), ["yes"], call=key(2))
        await file_call(journal, key(3))
        journal.note(SCOPE, digest(3), ["three"], call=key(3))
    async with opened(tmp_path) as journal:
        spent = journal.spent
        journal.note(SCOPE, digest(1), [CANARY])
    with segments(tmp_path)[1].open("ab") as file:
        file.write(CANARY.encode())
    async with opened(tmp_path):
        pass
    assert len(holds(tmp_path)) == 5
    assert forget(tmp_path, {digest(1)}) == Forgotten(notes=3, answers=2, blobs=1)
    assert holds(tmp_path) == []
    async with opened(tmp_path) as journal:
        assert journal.spent == spent
        assert (journal.find(key(1)), journal.find(key(2))) == (None, None)
        assert journal.find(key(3)) == FOUND
        assert notes_of(journal) == {digest(2): "two", digest(3): "three"}
        assert notes_of(journal, other) == {}
        assert journal.warnings == ()
    assert forget(tmp_path, {digest(1)}) == Forgotten(notes=0, answers=0, blobs=0)


async def test_further_calls_are_erased_by_name_failures_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), telling())
        journal.void(key(1), CANARY)
        journal.intent(key(2), tokens=1, usd=None)
        journal.failed(key(2), AuthError(f"401 for {CANARY}"), PAID)
        await file_call(journal, key(3))
    assert forget(tmp_path, set(), calls={key(1), key(2)}).answers == 2
    assert holds(tmp_path) == []
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(3))) == (None, FOUND)
        assert (journal.spent.calls, journal.spent.lost) == (3, 0)
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        assert journal.find(key(1)) == FOUND


async def test_a_segment_without_the_content_is_not_touched(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        journal.note(SCOPE, digest(1), [1], call=key(1))
    (segment,) = segments(tmp_path)
    before = segment.stat()
    assert forget(tmp_path, {digest(2)}) == Forgotten(notes=0, answers=0, blobs=0)
    assert segment.stat().st_ino == before.st_ino
    assert [path.name for path in (tmp_path / "journal").iterdir()] == [segment.name]


async def test_a_blob_that_another_answer_shares_is_kept(tmp_path: Path) -> None:
    long = ModelReply(text="x" * 50_000, stop="end")
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), long)
        await file_call(journal, key(2), long)
    (tmp_path / "blobs" / ".half").write_bytes(b"of a crash")
    assert forget(tmp_path, set(), calls={key(1)}).blobs == 2
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2)) is None) == (None, False)


async def test_a_segment_that_is_written_to_is_not_rewritten(tmp_path: Path) -> None:
    writer = RunJournal.open(tmp_path, index=False)
    await file_call(writer, key(1))
    with pytest.raises(RunDirError, match=r"still writes.*\n.*jsonl\n"):
        forget(tmp_path, set(), calls={key(1)})
    await writer.aclose()
    assert forget(tmp_path, set(), calls={key(1)}).answers == 1


async def test_a_disk_that_is_full_leaves_the_old_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), telling())

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left.*\n.*\n.*ask again"):
        forget(tmp_path, set(), calls={key(1)})
    monkeypatch.undo()
    assert [path.suffix for path in (tmp_path / "journal").iterdir()] == [".jsonl"]
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is not None
    assert forget(tmp_path, set(), calls={key(1)}).answers == 1
    assert holds(tmp_path) == []


def test_a_run_without_a_journal_has_nothing_to_forget(tmp_path: Path) -> None:
    assert forget(tmp_path, {digest(1)}) == Forgotten(notes=0, answers=0, blobs=0)
