"""The journal of a run: what is acknowledged is there, whatever happened in between."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from executors.errors import RateLimited, RetriesExhausted
from executors.ids import ContentKey, content_key
from executors.journal.journal import RunJournal
from executors.journal.records import Filed, Paid
from executors.messages import ModelReply, TokenLogprob
from executors.usage import Usage

pytestmark = pytest.mark.anyio

PAID = Paid(tokens=205, usd=Decimal("0.0012"), attempts=1)
REPLY = ModelReply(text="1: yes", stop="end", usage=Usage(input=200, output=5))


def key(n: int) -> ContentKey:
    return content_key(str(n))


@asynccontextmanager
async def opened(directory: Path, *, index: bool = True) -> AsyncGenerator[RunJournal]:
    journal = RunJournal.open(directory, index=index)
    try:
        yield journal
    finally:
        await journal.aclose()


async def filed(journal: RunJournal, call: ContentKey, reply: ModelReply = REPLY) -> None:
    journal.intent(call, tokens=300, usd=Decimal("0.01"))
    await journal.answer(call, reply, PAID)


async def test_an_answer_is_found_in_the_session_and_in_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        await filed(journal, key(1))
        assert journal.find(key(1)) == Filed(reply=REPLY, usd=PAID.usd)
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) == Filed(reply=REPLY, usd=PAID.usd)
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
        await filed(journal, key(1), reply)
        assert journal.find(key(1)) == Filed(reply=reply, usd=PAID.usd)


@pytest.mark.case("S14", "K14-14")
@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "other"])
async def test_an_answer_that_did_not_end_cleanly_is_asked_for_again(
    tmp_path: Path, stop: str
) -> None:
    async with opened(tmp_path) as journal:
        await filed(journal, key(1), ModelReply(text="", stop=stop))  # type: ignore[arg-type]
        assert journal.find(key(1)) is None
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        assert journal.spent.calls == 1


async def test_an_answer_of_no_use_is_asked_for_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await filed(journal, key(1))
        journal.void(key(1), "it was empty")
        assert journal.find(key(1)) is None
    async with opened(tmp_path) as journal:
        assert journal.find(key(1)) is None
        await filed(journal, key(1))
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


async def test_the_last_note_of_a_content_holds(tmp_path: Path) -> None:
    scope, other = content_key("scope"), content_key("other")
    first, second = os.urandom(16), os.urandom(16)
    async with opened(tmp_path) as journal:
        journal.note(scope, first + second, ["no", ["yes", "\ud83d"]], call=key(1))
        journal.note(other, first, [{"a": 1}])
        assert dict(journal.notes(scope)) == {}
    async with opened(tmp_path) as journal:
        assert dict(journal.notes(scope)) == {first: "no", second: ["yes", "\ud83d"]}
        journal.note(scope, first, [None])
    async with opened(tmp_path) as journal:
        assert dict(journal.notes(scope)) == {first: None, second: ["yes", "\ud83d"]}
        assert dict(journal.notes(other)) == {first: {"a": 1}}


async def test_nothing_is_written_where_nothing_was_filed(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    assert not (tmp_path / "journal").exists()


async def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await filed(journal, key(1), ModelReply(text="x" * 40_000, stop="end"))
    async with opened(tmp_path):
        pass
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
