"""The journal of a unit: the one that writes, and answers that the coordinator knows already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TypeAlias

from executors.errors import ModelError
from executors.ids import ContentKey
from executors.journal.filed_replies import answer_line, thaw_reply
from executors.journal.lines import Answered, read_line
from executors.journal.records import (
    NOTE_KEY_BYTES,
    Filed,
    Journal,
    NoJournal,
    Paid,
    ToolBegun,
    ToolDone,
)
from executors.messages import ModelReply
from executors.replies import JsonValue

__all__ = ["Known", "UnitJournal", "pack_known", "unpack_known"]

Known: TypeAlias = dict[ContentKey, Filed]


class UnitJournal:
    """Hands on what is written, and keeps what the report of the unit is made of.

    Attributes:
        inner: where it is written.
        known: answers that were paid for before, besides those of `inner`.
        values: what was filed of each content, by digest.
    """

    def __init__(self) -> None:
        self.inner: Journal = NoJournal()
        self.known: Known = {}
        self.values: dict[bytes, JsonValue] = {}

    def begin(self, inner: Journal, known: Known) -> None:
        """Begin a unit."""
        self.inner, self.known = inner, known
        self.values = {}

    def find(self, key: ContentKey) -> Filed | ModelError | None:
        return self.known.get(key) or self.inner.find(key)

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        self.inner.intent(key, tokens=tokens, usd=usd)

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        await self.inner.answer(key, reply, paid)

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        self.inner.failed(key, error, paid)

    def void(self, key: ContentKey, why: str) -> None:
        self.inner.void(key, why)
        self.known.pop(key, None)

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        self.inner.note(scope, keys, values, call=call)
        for place, value in enumerate(values):
            self.values[keys[place * NOTE_KEY_BYTES : (place + 1) * NOTE_KEY_BYTES]] = value

    def notes(self, scope: ContentKey) -> Iterable[tuple[bytes, JsonValue]]:
        return self.inner.notes(scope)

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        return self.inner.tool_found(key)

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        self.inner.tool_begun(key, name=name)

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        await self.inner.tool_done(key, result=result, failed=failed)


def pack_known(known: Known) -> bytes:
    """Return answers as they travel: lines of a journal."""
    nothing = Paid(tokens=0, usd=None, attempts=0)
    return b"".join(answer_line(key, filed.reply, nothing) for key, filed in known.items())


def unpack_known(raw: bytes) -> Known:
    """Return the answers that travelled."""
    lines = (read_line(line) for line in raw.split(b"\n") if line)
    return {
        ContentKey(line.key.hex()): Filed(reply=thaw_reply(line.fields, None), usd=None)
        for line in lines
        if isinstance(line, Answered)
    }
