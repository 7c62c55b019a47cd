"""A server that takes 100 requests a second: what is lost, refused and waited, told of it or not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.endpoint.buckets import Limits
from executors.errors import ModelError
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.messages import Message, ModelRequest
from executors.models.fakes.acts import Completion
from executors.models.fakes.limited import Limited, LimitKind, RetryAfter
from executors.models.fakes.server import FakeServer
from executors.models.openai.model import OpenAIModel
from tests.bench.row import Row

__all__ = ["rows"]

_ITEMS, _RATE, _WORKERS = 3_000, 100, 64
_TOLD = Limits(rpm=60.0 * _RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    name: str
    kind: LimitKind
    seconds: float = 1.0
    retry_after: RetryAfter = "seconds"
    limits: Limits | None = None


_CASES = (
    _Case(name="windows of 1 s, Retry-After", kind="fixed"),
    _Case(name="windows of 1 s, no Retry-After", kind="fixed", retry_after=None),
    _Case(name="a bucket, Retry-After", kind="bucket"),
    _Case(name="the last second, no Retry-After", kind="sliding", retry_after=None),
    _Case(name="a minute scaled to 2 s, no Retry-After", kind="fixed", seconds=2.0, retry_after=None),
    _Case(name="windows of 1 s, told", kind="fixed", limits=_TOLD),
    _Case(name="the last second, told, no Retry-After", kind="sliding", retry_after=None, limits=_TOLD),
)  # fmt: skip


def _ignore(event: Event) -> None:
    del event


async def _measure(case: _Case) -> list[Row]:
    server = Limited(
        round(_RATE * case.seconds),
        case.seconds,
        kind=case.kind,
        retry_after=case.retry_after,
        answer=Completion(after=0.05),
    )
    async with FakeServer(server) as fake:
        model = OpenAIModel("bench", base_url=fake.base_url)
        started = time.perf_counter()
        lost = await _ask_all(model, case.limits)
        took = time.perf_counter() - started
        await model.aclose()
    note = f"{lost} lost, {server.refused} refused"
    return [
        Row(
            name=f"{_ITEMS:,} items at {_RATE} a second, {_WORKERS} workers: {case.name}",
            ours=took if lost == 0 else float("inf"),
            floor=_ITEMS / _RATE,
            unit="s",
            bar=1.25,
            relative=True,
            note=f"{note}; floor: the ideal",
        ),
        Row(name="… refusals an item", ours=server.refused / _ITEMS, unit="", bar=0.1, note=note),
    ]


async def _ask_all(model: OpenAIModel, limits: Limits | None) -> int:
    """Ask for every item; return how many were lost."""
    allowance = CapsAllowance(Caps(), SystemClock())
    calls = Calls(allowance=allowance, emit=_ignore, concurrency=_WORKERS, limits=limits)
    pending, lost = iter(range(_ITEMS)), 0

    async def worker() -> None:
        nonlocal lost
        for n in pending:
            said = Message(role="user", content=f"item {n}")
            request = ModelRequest(messages=(said,), max_tokens=16)
            try:
                await calls.ask(model, request, role="judge", node=NodeId("root"))
            except ModelError:
                lost += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(_WORKERS):
            group.create_task(worker())
    return lost


def rows() -> list[Row]:
    """Measure each kind of limit; half a minute each."""
    return [row for case in _CASES for row in asyncio.run(_measure(case))]
