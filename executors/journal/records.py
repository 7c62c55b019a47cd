"""The Journal protocol: an answer is durable before it is acknowledged.

Four kinds of things are written down. A call: its intent before it leaves, its answer or its
failure after. What was made of answers: values filed under a scope and a content, so that other
windows over the same contents need no call. That an answer turned out to be useless. And a tool:
that it begins, and what came of it, so that its effect is not had twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from executors.errors import ModelError
from executors.ids import ContentKey
from executors.messages import ModelReply
from executors.replies import JsonValue

__all__ = [
    "NOTE_KEY_BYTES",
    "Filed",
    "Journal",
    "NoJournal",
    "Paid",
    "Spent",
    "ToolBegun",
    "ToolDone",
]

NOTE_KEY_BYTES = 16
"""Length of the key that a note is filed under, within its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What one logical call drew on the budget, all its tries together."""

    tokens: int
    usd: Decimal | None
    """None when the price is unknown."""
    attempts: int
    """Requests that were sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """A clean answer that was paid for before."""

    reply: ModelReply
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the earlier sessions of a run drew on its budget, lost calls included."""

    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)
    lost: int = 0
    """Calls that left and of which nothing is known: possibly paid, charged at their reservation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDone:
    """A tool ran to its end, and this is what it gave."""

    result: str
    failed: bool
    """Whether the result is an error's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBegun:
    """A tool began, and nobody knows what it did: the process ended, or what it gave was lost."""


class Journal(Protocol):
    """Where calls are written down. All methods but `answer` and `tool_done` return at once.

    Each raises DiskFault once something could not be written: from then on nothing is acknowledged.
    """

    def find(self, key: ContentKey) -> Filed | ModelError | None:
        """Return the clean answer filed under a key; in a replay, the failure too.

        Raises:
            ReplayMiss: in a replay, nothing is filed under the key.
        """
        ...

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        """Note, before it leaves, that a call with this worst case is about to leave.

        Survives the end of the process, not of the machine's power.
        """
        ...

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        """Return once the answer is durable, whatever happens to the process or the machine."""
        ...

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        """Note that a call ended without an answer: evidence, never an answer to a later look-up.

        Args:
            error: None when it was cancelled, or a bound ended it.
        """
        ...

    def void(self, key: ContentKey, why: str) -> None:
        """Note that an answer was of no use, so that the next session asks again."""
        ...

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        """File one value a content: `keys` are 16 bytes each, as many as values. The last one holds.

        Written with the next line that must be; `find` brings back free what was lost in between.

        Args:
            call: whose answer the values came from, so that both can be erased together.
        """
        ...

    def notes(self, scope: ContentKey) -> Iterable[tuple[bytes, JsonValue]]:
        """Yield what earlier sessions filed under a scope, each content once, in no order."""
        ...

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        """Return what is known of a tool's run, of this session or an earlier one; the last holds.

        Raises:
            ReplayMiss: in a replay, nothing is recorded under the key.
        """
        ...

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        """Note, before it runs, that a tool is about to run.

        Survives the end of the process, not of the machine's power.

        Raises:
            ReplayMiss: in a replay, where no tool is run.
        """
        ...

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        """Return once what a tool gave is durable."""
        ...


class NoJournal:
    """Remembers nothing: each run pays for itself."""

    def find(self, key: ContentKey) -> Filed | ModelError | None:
        return None

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        pass

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        pass

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        pass

    def void(self, key: ContentKey, why: str) -> None:
        pass

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        pass

    def notes(self, scope: ContentKey) -> Iterator[tuple[bytes, JsonValue]]:
        return iter(())

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        return None

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        pass

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        pass
