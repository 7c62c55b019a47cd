"""The journal of a run: what is acknowledged is there, whatever happened in between."""

import os
import tracemalloc
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from executors.errors import DiskFault, InternalError, RateLimited, RetriesExhausted
from executors.ids import content_key
from executors.journal.journal import RunJournal
from executors.journal.records import Filed, Journal, Paid, Spent
from executors.messages import ModelReply, StopReason, TokenLogprob
from executors.replies import JsonValue
from executors.usage import Usage
from tests.executors.journals import (
    FOUND,
    PAID,
    REPLY,
    SCOPE,
    file_call,
    key,
    notes_of,
    opened,
    segments,
)

pytestmark = pytest.mark.anyio


async def test_an_answer_is_found_in_the_session_and_in_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        await file_call(journal, key(1))
        assert journal.find(key(1)) == FOUND
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == FOUND
        assert journal.find(key(2)) is None
        assert (journal.spent.calls, journal.spent.tokens) == (1, 205)
        assert (journal.spent.usd, journal.spent.lost) == (Decimal("0.0012"), 0)
        assert journal.warnings == ()


async def test_a_reply_comes_back_whole(tmp_path: Path) -> None:
    reply = ModelReply(
        text="half a character: \ud83d, and all of one: \U0001f600\n",
        stop="end",
        stop_raw="stop",
        usage=Usage(input=1, cache_read=2, cache_write=0, output=None),
        model="m-2026",
        reasoning="hm",
        token_logprobs=(
            TokenLogprob(token="ye", logprob=-0.25, top=(("ye", -0.25), ("no", float("-inf")))),
        ),
        temperature=0.0,
        requests=2,
    )
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), reply)
        assert journal.find(key(1)) == Filed(reply=reply, usd=PAID.usd)


async def test_numbers_that_json_cannot_hold_come_back(tmp_path: Path) -> None:
    never = TokenLogprob(token="no", logprob=float("-inf"), top=(("yes", -0.5),))
    reply = ModelReply(text="no", stop="end", token_logprobs=(never,))
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), reply)
        assert journal.find(key(1)) == Filed(reply=reply, usd=PAID.usd)


@pytest.mark.case("S14", "K14-14")
@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "other"])
async def test_an_answer_that_did_not_end_cleanly_is_asked_for_again(
    tmp_path: Path, stop: StopReason
) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), ModelReply(text="", stop=stop))
        assert journal.find(key(1)) is None
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        assert journal.spent.calls == 1


async def test_an_answer_of_no_use_is_asked_for_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        journal.void(key(1), "it was empty")
        assert journal.find(key(1)) is None
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        await file_call(journal, key(1))
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is not None


async def test_a_failure_is_paid_and_no_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        journal.intent(key(1), tokens=300, usd=None)
        last = RateLimited("429", retry_after=2.5)
        journal.failed(key(1), RetriesExhausted(last=last, attempts=5), PAID)
        journal.intent(key(2), tokens=300, usd=None)
        journal.failed(key(2), None, Paid(tokens=0, usd=None, attempts=0))
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        assert (journal.spent.calls, journal.spent.tokens, journal.spent.lost) == (1, 205, 0)


async def test_a_call_that_left_and_of_which_nothing_is_known_is_charged(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        journal.intent(key(1), tokens=300, usd=Decimal("0.01"))
    for _ in range(2):
        async with opened(tmp_path) as journal:
            assert [(one.key, one.tokens, one.usd) for one in journal.lost] == [
                (key(1), 300, Decimal("0.01"))
            ]
            spent = journal.spent
            assert (spent.calls, spent.tokens, spent.usd, spent.lost) == (
                1,
                300,
                Decimal("0.01"),
                1,
            )


async def test_a_call_that_left_twice_and_was_answered_once_is_lost_once(tmp_path: Path) -> None:
    """Two workers may stream the same call to one segment."""
    async with opened(tmp_path) as journal:
        journal.intent(key(1), tokens=300, usd=None)
        await file_call(journal, key(1))
    async with opened(tmp_path) as journal:
        assert (journal.spent.calls, journal.spent.lost) == (2, 1)


async def test_the_last_note_of_a_content_holds(tmp_path: Path) -> None:
    other = content_key("other")
    first, second = os.urandom(16), os.urandom(16)
    async with opened(tmp_path) as journal:
        journal.note(SCOPE, first + second, ["no", ["yes", "\ud83d"]], call=key(1))
        journal.note(other, first, [{"a": 1}])
        assert notes_of(journal) == {}
    async with opened(tmp_path) as journal:
        assert notes_of(journal) == {first: "no", second: ["yes", "\ud83d"]}
        journal.note(SCOPE, first, [None])
    async with opened(tmp_path) as journal:
        assert notes_of(journal) == {first: None, second: ["yes", "\ud83d"]}
        assert notes_of(journal, other) == {first: {"a": 1}}
        assert notes_of(journal, key(9)) == {}


async def test_keys_that_do_not_fit_their_values_are_our_fault(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        with pytest.raises(InternalError):
            journal.note(SCOPE, os.urandom(15), ["no"])


async def test_an_intent_is_written_before_its_call_leaves(tmp_path: Path) -> None:
    """And with it what waited: notes, failures."""
    async with opened(tmp_path) as journal:
        journal.note(SCOPE, bytes(16), ["yes"])
        assert segments(tmp_path) == []
        journal.intent(key(1), tokens=300, usd=None)
        (segment,) = segments(tmp_path)
        lines = segment.read_bytes().splitlines()
        assert [line[:4] for line in lines] == [b'{"n"', b'{"i"']


async def test_nothing_is_written_where_nothing_was_filed(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    assert not (tmp_path / "journal").exists()


async def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), ModelReply(text="x" * 40_000, stop="end"))
    async with opened(tmp_path):
        pass
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.case("S44")
async def test_a_long_answer_lies_in_a_blob_and_a_million_ids_in_short_lines(
    tmp_path: Path,
) -> None:
    long = ModelReply(text="x" * 5_000_000, stop="end", reasoning="y" * 40_000)
    ids = b"".join(n.to_bytes(16, "big") for n in range(1_000_000))
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), long)
        assert journal.find(key(1)) == Filed(reply=long, usd=PAID.usd)
        journal.note(SCOPE, ids[: 16 * 20_000], [1] * 20_000, call=key(1))
    (blob,) = (tmp_path / "blobs").iterdir()
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == Filed(reply=long, usd=PAID.usd)
        assert sum(1 for _ in journal.notes(SCOPE)) == 20_000
        blob.write_bytes(blob.read_bytes().replace(b"xxx", b"xyx", 1))
        assert journal.find(key(1)) is None
        blob.unlink()
        assert journal.find(key(1)) is None
        journal.note(SCOPE, ids, [1] * 1_000_000, call=key(1))
    for segment in segments(tmp_path):
        with segment.open("rb") as lines:
            assert max(map(len, lines)) < 64 * 1024


async def test_a_long_answer_that_did_not_end_cleanly_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), ModelReply(text='"s":' * 20_000, stop="max_tokens"))
        await file_call(journal, key(2), ModelReply(text='"s":' * 20_000, stop="end"))
        assert (journal.find(key(1)), journal.find(key(2)) is None) == (None, False)
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2)) is None) == (None, False)


@pytest.mark.parametrize("length", [10, 100_000])
async def test_who_stops_waiting_loses_nothing(tmp_path: Path, length: int) -> None:
    reply = ModelReply(text="x" * length, stop="end")
    async with opened(tmp_path) as journal, anyio.create_task_group() as group:
        group.start_soon(file_call, journal, key(1), reply)
        group.start_soon(file_call, journal, key(2), reply)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == journal.find(key(2)) == Filed(reply=reply, usd=PAID.usd)
        assert journal.spent == Spent(calls=2, tokens=410, usd=Decimal("0.0024"))


async def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
    with pytest.raises(DiskFault, match="closed"):
        journal.intent(key(2), tokens=1, usd=None)
    with pytest.raises(DiskFault, match="closed"):
        journal.find(key(1))
    await journal.aclose()


async def test_a_worker_sees_what_it_filed_itself_and_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1))
        journal.note(SCOPE, bytes(16), ["yes"])
    async with opened(tmp_path, index=False) as worker:
        await file_call(worker, key(2))
        assert (worker.find(key(1)), worker.find(key(2))) == (None, FOUND)
        assert (notes_of(worker), worker.spent, worker.lost) == ({}, Spent(), ())
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2))) == (FOUND, FOUND)
        assert journal.spent.calls == 2


async def test_the_journal_is_small_on_disk_and_in_memory(tmp_path: Path) -> None:
    """At most the answers, 350 bytes a call and 100 a record and pass; 200 in memory a call."""
    calls, window = 500, 8
    answer = REPLY.text.encode()
    values: list[JsonValue] = [{"v": 1, "p": 0.25}] * window
    async with opened(tmp_path) as journal:
        await file_call(journal, key(0))
        tracemalloc.start()
        for n in range(1, calls):
            journal.intent(key(n), tokens=12_345, usd=Decimal("0.001234"))
            async with anyio.create_task_group() as group:
                group.start_soon(journal.answer, key(n), REPLY, PAID)
            journal.note(SCOPE, os.urandom(16 * window), values, call=key(n))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    (segment,) = (tmp_path / "journal").iterdir()
    assert segment.stat().st_size <= calls * (len(answer) + 350 + window * 100)
    assert held <= calls * 200


def test_the_journal_is_what_calls_ask_for(tmp_path: Path) -> None:
    journal: Journal = RunJournal.open(tmp_path, index=False)
    assert journal.find(key(1)) is None
