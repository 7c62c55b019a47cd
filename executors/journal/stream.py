"""The journal of a worker that shares no disk: what it files is made durable by the coordinator."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy
from decimal import Decimal
from typing import Final, TypeVar

import anyio

from executors.errors import DiskFault, ModelError, RlmError
from executors.ids import ContentKey
from executors.journal.filed_replies import answer_line, is_clean
from executors.journal.lines import (
    begun_line,
    done_line,
    failure_line,
    intent_line,
    note_lines,
    void_line,
)
from executors.journal.records import Filed, Paid, ToolBegun, ToolDone
from executors.messages import ModelReply
from executors.replies import JsonValue

__all__ = ["StreamJournal"]

_KEPT: Final = 4_096  # answers, and runs of tools, that are found here; older ones are elsewhere
_V = TypeVar("_V")
_PATIENCE: Final = 60.0  # seconds that the last batch may take


class StreamJournal:
    """Sends lines in batches, one after another: each takes all that is there when it starts.

    `run` has to be running in a task of the caller's for as long as the journal is used.

    Args:
        send: returns once the lines are durable where they go (`RunJournal.take`). What it raises
            as OSError or RlmError ends the journal: nothing is acknowledged from there on.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._lines: list[bytes] = []
        self._waiting: list[Future[None]] = []
        self._wanted = anyio.Event()
        self._fault: DiskFault | None = None
        self._own: dict[ContentKey, Filed] = {}
        self._tools: dict[ContentKey, ToolDone | ToolBegun] = {}

    async def run(self) -> None:
        """Send what comes until the journal is closed, or cannot send any more."""
        while self._fault is None:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            lines, self._lines = self._lines, []
            waiting, self._waiting = self._waiting, []
            if not lines:
                continue
            try:
                await self._send(b"".join(lines))
            except (OSError, RlmError) as error:
                self._fail(error, waiting)
            else:
                _resolve(waiting)

    async def aclose(self) -> None:
        """Send what is left and let `run` end.

        Raises:
            DiskFault: it could not be sent.
        """
        if self._lines and self._fault is None:
            with anyio.move_on_after(_PATIENCE, shield=True):
                await self._durable()
        self._fault = self._fault or DiskFault("the journal is closed")
        self._wanted.set()

    # ---------------------------------------------------------------- the protocol

    def find(self, key: ContentKey) -> Filed | None:
        return self._own.get(key)

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        """See `Journal.intent`; here it survives the worker once its batch has left."""
        self._put(intent_line(key, tokens, usd))
        self._wanted.set()

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        self._put(answer_line(key, reply, paid))
        if is_clean(reply):
            _keep(self._own, key, Filed(reply=reply, usd=paid.usd))
        await self._durable()

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        self._put(failure_line(key, error, paid))

    def void(self, key: ContentKey, why: str) -> None:
        self._put(void_line(key, why))
        self._own.pop(key, None)

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        for line in note_lines(scope, keys, values, call):
            self._put(line)

    def notes(self, scope: ContentKey) -> Iterator[tuple[bytes, JsonValue]]:
        return iter(())

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        return self._tools.get(key)

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        """See `Journal.tool_begun`; here it survives the worker once its batch has left."""
        self._put(begun_line(key, name))
        self._wanted.set()
        _keep(self._tools, key, ToolBegun())

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        self._put(done_line(key, result, failed=failed))
        _keep(self._tools, key, ToolDone(result=result, failed=failed))
        await self._durable()

    # ---------------------------------------------------------------- batches

    def _put(self, line: bytes) -> None:
        if self._fault is not None:
            raise copy(self._fault)
        self._lines.append(line)

    def _durable(self) -> Future[None]:
        future: Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._wanted.set()
        return future

    def _fail(self, error: OSError | RlmError, waiting: list[Future[None]]) -> None:
        what = error.what if isinstance(error, RlmError) else str(error)
        self._fault = DiskFault(f"the coordinator takes no lines of the journal: {what}")
        for future in [*waiting, *self._waiting]:
            if not future.done():
                future.set_exception(copy(self._fault))
        self._waiting.clear()


def _keep(found: dict[ContentKey, _V], key: ContentKey, value: _V) -> None:
    """Remember a value, and forget the oldest one where there are too many."""
    found[key] = value
    if len(found) > _KEPT:
        del found[next(iter(found))]


def _resolve(waiting: list[Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
