"""A recorded run as a journal: everything comes from it, and nothing is changed in it."""

from decimal import Decimal
from pathlib import Path

import pytest

from executors.errors import (
    AuthError,
    ContextExceeded,
    ModelError,
    RateLimited,
    ReplayMiss,
    RequestRejected,
    RetriesExhausted,
    RunDirError,
    ServerFault,
)
from executors.journal.failures import freeze, thaw
from executors.journal.records import Filed, Journal, Paid
from executors.journal.replay import Replay
from executors.messages import ModelReply
from executors.secrets import Secret
from tests.executors.journals import FOUND, PAID, SCOPE, file_call, key, notes_of, opened

pytestmark = pytest.mark.anyio


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


async def test_a_replay_answers_every_recorded_call_and_writes_nothing(tmp_path: Path) -> None:
    cut = ModelReply(text="1: ", stop="max_tokens")
    long = ModelReply(text="x" * 50_000, stop="end")
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        await file_call(journal, key(2), cut)
        await file_call(journal, key(3), long)
        await file_call(journal, key(4))
        journal.void(key(4), "of no use")
        journal.note(SCOPE, bytes(16), [1])
    before = snapshot(tmp_path)
    replay: Journal = Replay(tmp_path)
    assert replay.find(key(1)) == FOUND
    assert replay.find(key(2)) == Filed(reply=cut, usd=PAID.usd)
    assert replay.find(key(3)) == Filed(reply=long, usd=PAID.usd)
    assert replay.find(key(4)) == FOUND
    assert notes_of(replay) == {}
    await replay.answer(key(1), FOUND.reply, PAID)
    replay.failed(key(1), None, PAID)
    replay.void(key(1), "")
    replay.note(SCOPE, bytes(16), [1])
    assert snapshot(tmp_path) == before


async def test_a_call_that_was_not_recorded_is_a_loud_error(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        journal.intent(key(2), tokens=1, usd=None)
        journal.failed(key(2), None, Paid(tokens=0, usd=None, attempts=1))
    replay = Replay(tmp_path)
    for call in (key(2), key(3)):
        with pytest.raises(ReplayMiss, match=str(call)) as miss:
            replay.find(call)
        assert miss.value.key == call
        assert str(tmp_path) in str(miss.value)
    with pytest.raises(ReplayMiss):
        replay.intent(key(3), tokens=1, usd=None)


async def test_the_last_outcome_of_a_call_is_its_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        journal.intent(key(1), tokens=1, usd=None)
        journal.failed(key(1), ServerFault("500", status=500), PAID)
        await file_call(journal, key(2), ModelReply(text="", stop="max_tokens"))
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        journal.intent(key(2), tokens=1, usd=None)
        journal.failed(key(2), ServerFault("500", status=500), PAID)
        journal.failed(key(1), None, PAID)  # cancelled: no outcome
    replay = Replay(tmp_path)
    assert replay.find(key(1)) == FOUND
    assert isinstance(replay.find(key(2)), ServerFault)


FAILURES: list[ModelError] = [
    AuthError("401", where="at the server", hint="check the key"),
    RequestRejected("400", status=400),
    ContextExceeded("too long"),
    RateLimited("429", retry_after=1.5),
    ServerFault("half: \ud83d", retry_after=None, status=503),
    RetriesExhausted(last=RateLimited("429", retry_after=2.0), attempts=5),
    RetriesExhausted(last=RetriesExhausted(last=AuthError("x"), attempts=1), attempts=2),
]


def attributes(error: ModelError) -> dict[str, object]:
    return {
        name: (type(value), attributes(value)) if isinstance(value, ModelError) else value
        for name, value in vars(error).items()
    }


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_recorded_failure_is_raised_again_as_it_was(
    tmp_path: Path, error: ModelError
) -> None:
    error.attempts, error.maybe_paid = 3, True
    async with opened(tmp_path) as journal:
        journal.intent(key(1), tokens=1, usd=None)
        journal.failed(key(1), error, PAID)
    replay = Replay(tmp_path)
    first, second = replay.find(key(1)), replay.find(key(1))
    assert isinstance(first, ModelError)
    assert first is not second
    assert type(first) is type(error)
    assert attributes(first) == attributes(error)
    assert (str(first), first.args) == (str(error), error.args)
    with pytest.raises(type(error)):
        raise first


def test_a_failure_of_a_newer_version_is_a_failure() -> None:
    error = thaw({"$": "melted", "what": "the server melted", "where": None, "hint": None})
    assert type(error) is ModelError
    assert str(error) == "the server melted"


def test_a_key_that_a_server_echoed_is_not_written_down() -> None:
    secret = Secret("canary-of-the-journal")
    frozen = freeze(RetriesExhausted(last=AuthError(f"bad key {secret.reveal()}"), attempts=1))
    assert secret.reveal() not in repr(frozen)


def test_a_directory_without_a_record_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match=r"cannot be replayed\n.*no call.*\n.*rlm runs list"):
        Replay(tmp_path)


async def test_damage_is_a_miss(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        await file_call(journal, key(2), ModelReply(text="x" * 50_000, stop="end"))
        journal.failed(key(3), AuthError("401"), Paid(tokens=0, usd=Decimal(0), attempts=1))
    replay = Replay(tmp_path)
    (segment,) = (tmp_path / "journal").iterdir()
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b'"x"', b'"y"').replace(b'"what"', b'"when"'))
    (blob,) = (tmp_path / "blobs").iterdir()
    blob.unlink()
    for n in (1, 2, 3):
        with pytest.raises(ReplayMiss):
            replay.find(key(n))
