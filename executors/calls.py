"""The one pipeline of a model call: reserve -> single-flight -> journal -> endpoint -> settle.

Every call of every role passes here, so that the bounds hold whatever the interleaving, identical
calls in flight are paid once, and each outcome is an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from typing import Literal

import anyio

from executors.clock import Clock, SystemClock
from executors.endpoint import Endpoint, RetryPolicy
from executors.errors import Halted, ModelError
from executors.events import CallFailed, CallFinished, CallStarted, Emit, Retried
from executors.gate.allowance import Allowance, Estimate, Reservation
from executors.ids import ContentKey, NodeId
from executors.journal.records import Journal, NoJournal
from executors.messages import CallRole, ModelReply, ModelRequest
from executors.models.base import Model, ModelInfo
from executors.models.invoke import check_window, invoke
from executors.models.prices import NoPrices, Price, PriceList, cost_of
from executors.secrets import scrub
from executors.tokens import TokenCounter, estimate, estimate_request
from executors.usage import Usage

__all__ = ["Answer", "Calls", "call_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply with what it cost. `cost` is None when the price or the usage is unknown."""

    reply: ModelReply
    key: ContentKey
    cost: Decimal | None
    attempts: int
    source: Literal["paid", "shared", "journal"]


def call_key(info: ModelInfo, request: ModelRequest, ordinal: int) -> ContentKey:
    """Hash everything that decides the answer, and the caller's sample ordinal.

    Concurrency, paths, keys and code are left out: they change nothing that a model reads.
    """
    digest = _model_digest(info).copy()
    parts = [
        repr((request.max_tokens, request.temperature, request.seed, request.top_logprobs)),
        repr((request.stop, ordinal)),
        request.schema.canonical if request.schema else "",
    ]
    for message in request.messages:
        parts += (message.role, message.content)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return ContentKey(digest.hexdigest())


_digests: dict[ModelInfo, blake2b] = {}


def _model_digest(info: ModelInfo) -> blake2b:
    found = _digests.get(info)
    if found is None:
        text = repr((info.origin, info.provider, info.name, info.identity))
        found = _digests[info] = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    return found


class _Flight:
    """An identical call in progress, for those who come while it flies."""

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.answer: Answer | None = None
        self.error: ModelError | Halted | None = None


class Calls:
    """Asks models for one run.

    Args:
        allowance: what the run may spend.
        emit: where events go; called on the loop's thread and must not block.
        concurrency: calls in flight at one endpoint; a model may allow fewer.
    """

    def __init__(
        self,
        *,
        allowance: Allowance,
        emit: Emit,
        clock: Clock | None = None,
        journal: Journal | None = None,
        prices: PriceList | None = None,
        retry: RetryPolicy | None = None,
        concurrency: int = 16,
        count_tokens: TokenCounter = estimate,
    ) -> None:
        self._allowance = allowance
        self.emit = emit
        self.clock = clock or SystemClock()
        self.journal = journal or NoJournal()
        self._prices = prices or NoPrices()
        self._retry = retry or RetryPolicy()
        self._concurrency = concurrency
        self._count = count_tokens
        self._flights: dict[ContentKey, _Flight] = {}
        self._endpoints: dict[ModelInfo, Endpoint] = {}
        self._room = anyio.Event()

    async def ask(
        self,
        model: Model,
        request: ModelRequest,
        *,
        role: CallRole,
        node: NodeId,
        ordinal: int = 0,
    ) -> Answer:
        """Return the answer to a request, paying for it at most once.

        Raises:
            ModelError: the request failed for good; RetriesExhausted names the attempts.
            Halted: a bound left no room; nothing was sent.
        """
        key = call_key(model.info, request, ordinal)
        while (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if flight.answer is not None:
                return self._share(flight.answer, model, role, node)
            if flight.error is not None:
                raise flight.error
            # Its leader was cancelled: the first to come here leads again.
        flight = self._flights[key] = _Flight()
        try:
            flight.answer = await self._lead(model, request, key, role, node)
            return flight.answer
        except (ModelError, Halted) as error:
            flight.error = error
            raise
        finally:
            del self._flights[key]
            flight.landed.set()

    async def _lead(
        self, model: Model, request: ModelRequest, key: ContentKey, role: CallRole, node: NodeId
    ) -> Answer:
        prompt = estimate_request(request, self._count)
        check_window(model, request, prompt)
        found = self.journal.find(key)
        if found is not None:
            answer = Answer(reply=found, key=key, cost=Decimal(0), attempts=0, source="journal")
            self.finished(answer, model, role, node, 0.0)
            return answer
        price = self._prices.price(model.info)
        worst = _worst_case(prompt, request.max_tokens, price)
        payment = _Payment(
            self, model=model, request=request, key=key, role=role, node=node, worst=worst
        )
        return await payment.answer(price)

    async def reserve(self, estimate: Estimate) -> Reservation:
        """Wait for room, as long as calls in flight may still give some back."""
        while True:
            got = self._allowance.reserve(estimate)
            if isinstance(got, Reservation):
                return got
            if got.final:
                raise got.halted
            await self._room.wait()

    def settle(self, reservation: Reservation, usage: Usage | None, cost: Decimal | None) -> None:
        """Charge what was used; without a usage, the whole reservation."""
        tokens = usage.total if usage else None
        self._allowance.settle(reservation, tokens=tokens, usd=cost)
        self._make_room()

    def release(self, reservation: Reservation) -> None:
        """Give back what never left."""
        self._allowance.release(reservation)
        self._make_room()

    def _make_room(self) -> None:
        self._room.set()
        self._room = anyio.Event()

    def endpoint(self, model: Model) -> Endpoint:
        """Return the endpoint of a model: one for all its callers."""
        info = model.info
        found = self._endpoints.get(info)
        if found is None:
            cap = min(self._concurrency, info.max_concurrency or self._concurrency)
            found = self._endpoints[info] = Endpoint(cap=cap, retry=self._retry, clock=self.clock)
        return found

    def _share(self, answer: Answer, model: Model, role: CallRole, node: NodeId) -> Answer:
        shared = Answer(
            reply=answer.reply, key=answer.key, cost=Decimal(0), attempts=0, source="shared"
        )
        self.finished(shared, model, role, node, 0.0)
        return shared

    def finished(
        self, answer: Answer, model: Model, role: CallRole, node: NodeId, seconds: float
    ) -> None:
        """Emit the end of an answered call."""
        self.emit(
            CallFinished(
                node=node,
                at=self.clock.now(),
                key=answer.key,
                role=role,
                model=model.info.spec,
                stop=answer.reply.stop,
                usage=answer.reply.usage,
                cost=answer.cost,
                attempts=answer.attempts,
                seconds=seconds,
                source=answer.source,
            )
        )


class _Payment:
    """One paid call. An attempt that may have been billed keeps its charge; the next reserves anew."""

    def __init__(
        self,
        calls: Calls,
        *,
        model: Model,
        request: ModelRequest,
        key: ContentKey,
        role: CallRole,
        node: NodeId,
        worst: Estimate,
    ) -> None:
        self._calls = calls
        self._model = model
        self._request = request
        self._key = key
        self._role: CallRole = role
        self._node = node
        self._worst = worst
        self._reservation: Reservation | None = None
        self._in_flight = False

    async def answer(self, price: Price | None) -> Answer:
        calls = self._calls
        self._reservation = await calls.reserve(self._worst)
        started = calls.clock.monotonic()
        self._announce()
        try:
            endpoint = calls.endpoint(self._model)
            reply, attempts = await endpoint.run(self._attempt, on_retry=self._retried)
        except ModelError as error:
            self._close(charge=error.maybe_paid)
            self._failed(error, calls.clock.monotonic() - started)
            raise
        except BaseException:
            # Cancelled, or out of room between two attempts. What is in flight may be billed.
            self._close(charge=self._in_flight)
            raise
        cost = cost_of(reply.usage, price)
        self._settle(reply.usage, cost)
        await calls.journal.answer(self._key, reply)
        answer = Answer(reply=reply, key=self._key, cost=cost, attempts=attempts, source="paid")
        seconds = calls.clock.monotonic() - started
        calls.finished(answer, self._model, self._role, self._node, seconds)
        return answer

    async def _attempt(self) -> ModelReply:
        if self._reservation is None:
            self._reservation = await self._calls.reserve(self._worst)
        self._in_flight = True
        reply = await invoke(self._model, self._request)
        self._in_flight = False
        return reply

    def _announce(self) -> None:
        calls = self._calls
        calls.emit(
            CallStarted(
                node=self._node,
                at=calls.clock.now(),
                key=self._key,
                role=self._role,
                model=self._model.info.spec,
            )
        )
        calls.journal.intent(self._key)

    def _retried(self, attempt: int, error: ModelError, wait: float) -> None:
        self._in_flight = False
        if error.maybe_paid:
            self._close(charge=True)
        self._calls.emit(
            Retried(
                node=self._node,
                at=self._calls.clock.now(),
                key=self._key,
                attempt=attempt,
                error=error.code,
                wait=wait,
                possibly_paid=error.maybe_paid,
            )
        )

    def _failed(self, error: ModelError, seconds: float) -> None:
        self._calls.emit(
            CallFailed(
                node=self._node,
                at=self._calls.clock.now(),
                key=self._key,
                role=self._role,
                model=self._model.info.spec,
                error=error.code,
                message=scrub(error.what),
                attempts=error.attempts,
                seconds=seconds,
                possibly_paid=error.maybe_paid,
            )
        )

    def _settle(self, usage: Usage, cost: Decimal | None) -> None:
        if self._reservation is not None:
            self._calls.settle(self._reservation, usage, cost)
            self._reservation = None

    def _close(self, *, charge: bool) -> None:
        if self._reservation is None:
            return
        if charge:
            self._calls.settle(self._reservation, None, None)
        else:
            self._calls.release(self._reservation)
        self._reservation = None


def _worst_case(prompt: int, max_tokens: int, price: Price | None) -> Estimate:
    tokens = prompt + max_tokens
    usd = cost_of(Usage(input=prompt, output=max_tokens), price)
    return Estimate(tokens=tokens, usd=usd)
