"""What tests of the journal share: keys, an answer, a journal that is closed again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

from executors.ids import ContentKey, content_key
from executors.journal.journal import RunJournal
from executors.journal.records import Filed, Journal, Paid
from executors.messages import ModelReply
from executors.usage import Usage

__all__ = ["FOUND", "PAID", "REPLY", "SCOPE", "file_call", "key", "notes_of", "opened", "segments"]

PAID = Paid(tokens=205, usd=Decimal("0.0012"), attempts=1)
REPLY = ModelReply(text="1: yes", stop="end", usage=Usage(input=200, output=5))
FOUND = Filed(reply=REPLY, usd=PAID.usd)
SCOPE = content_key("scope")


def key(n: int) -> ContentKey:
    """Return the key of the n-th call."""
    return content_key(str(n))


@asynccontextmanager
async def opened(directory: Path, *, index: bool = True) -> AsyncGenerator[RunJournal]:
    """Open a journal and close it at the end."""
    journal = RunJournal.open(directory, index=index)
    try:
        yield journal
    finally:
        await journal.aclose()


async def file_call(journal: Journal, call: ContentKey, reply: ModelReply = REPLY) -> None:
    """File a call with its intent and its answer."""
    journal.intent(call, tokens=300, usd=Decimal("0.01"))
    await journal.answer(call, reply, PAID)


def notes_of(journal: Journal, scope: ContentKey = SCOPE) -> dict[bytes, object]:
    """Return the notes of a scope, each content once."""
    found = list(journal.notes(scope))
    assert len(dict(found)) == len(found)
    return dict(found)


def segments(directory: Path) -> list[Path]:
    """Return the files of the journal folder that hold lines."""
    return sorted((directory / "journal").glob("*.jsonl"))
