"""The one pipeline of a model call: reserve -> single-flight -> journal -> endpoint -> settle.

Every call of every role passes here, so that the bounds hold whatever the interleaving, identical
calls in flight are paid once, and each outcome is an event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

import anyio

from executors.calls.keys import CallKeys, call_key
from executors.calls.log import Answer, CallLog
from executors.calls.meeting import met
from executors.calls.payment import Payment, Room
from executors.calls.tariff import Tariff
from executors.clock import Clock, SystemClock
from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.errors import Halted, ModelError
from executors.events import Emit, Warned
from executors.gate.allowance import Allowance
from executors.gate.governor import Outlet
from executors.ids import ContentKey, NodeId
from executors.journal.records import Filed, Journal, NoJournal
from executors.makers import maker
from executors.messages import CallRole, ModelReply, ModelRequest
from executors.models.base import Model, ModelInfo
from executors.models.invoke import check_window, invoke
from executors.models.prices import NoPrices, PriceList
from executors.models.shown import OnText, Shown
from executors.models.tool_calls import check_tools
from executors.places import step_aside
from executors.tokens import TokenCounter, estimate, estimate_request

__all__ = ["Answer", "Calls", "Foreseen", "call_key"]

_ROOT = NodeId("root")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a call would be, found without making it."""

    key: ContentKey
    prompt: int
    """Tokens, as the run counts them."""
    filed: bool
    """The journal holds its answer, so that it would cost nothing."""


_answer = maker(Answer)


class Calls:
    """Asks models for one run.

    Args:
        allowance: what the run may spend.
        emit: where events go; called on the loop's thread and must not block.
        concurrency: calls in flight at one endpoint; a model may allow fewer.
        limits: what the server allows a minute, where that is known; it is found out otherwise.
        outlet: decides which models texts may go to; None lets them go to each.
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
        limits: Limits | None = None,
        count_tokens: TokenCounter = estimate,
        outlet: Outlet | None = None,
    ) -> None:
        self._allowance = allowance
        self._outlet = outlet
        self._room = Room(allowance)
        self.emit = emit
        self.clock = clock or SystemClock()
        self.journal = journal or NoJournal()
        self._prices = prices or NoPrices()
        self._retry = retry or RetryPolicy()
        self._concurrency = concurrency
        self._limits = limits
        self._count = count_tokens
        self._flights: dict[ContentKey, _Flight] = {}
        self._endpoints: dict[ModelInfo, Endpoint] = {}
        self._lines: dict[int, _Line] = {}

    async def ask(
        self,
        model: Model,
        request: ModelRequest,
        *,
        role: CallRole,
        node: NodeId,
        ordinal: int = 0,
        on_text: OnText | None = None,
    ) -> Answer:
        """Return the answer to a request, paying for it at most once.

        Args:
            on_text: hears the text as it comes; all at once where the model cannot be watched, or
                the answer is there already.

        Raises:
            ModelError: the request failed for good; RetriesExhausted names the attempts.
            Halted: a bound left no room, the deadline came between two tries, or no text may go to
                this model.
            ValidationError: its tools or its choice of one cannot be sent.
        """
        shown = None if on_text is None else Shown(on_text)
        line = self._line(model)
        key = line.keys.of(request, ordinal)
        log = CallLog(self.emit, self.clock, key=key, model=line.spec, role=role, node=node)
        while (flight := self._flights.get(key)) is not None:
            await flight.landing()
            if flight.answer is not None:
                return _heard(_shared(flight.answer, log), shown)
            if flight.error is not None:
                log.refused(flight.error)
                raise copy(flight.error)  # each raise writes its traceback into its object
            # Its leader was cancelled: the first to come here leads again.
        flight = self._flights[key] = _Flight()
        try:
            answer = flight.answer = await self._lead(line, request, key, log, shown)
        except (ModelError, Halted) as error:
            flight.error = error
            raise
        finally:
            del self._flights[key]
            flight.land()
        return _heard(answer, shown)

    async def _lead(
        self,
        line: _Line,
        request: ModelRequest,
        key: ContentKey,
        log: CallLog,
        shown: Shown | None,
    ) -> Answer:
        try:
            prompt = self._checked(line, request)
        except ModelError as error:
            error.attempts = 0
            log.refused(error)
            raise
        found = self.journal.find(key)
        if found is not None:
            return _filed(found, key, log)
        tariff = line.tariff
        worst = tariff.worst(prompt, request.max_tokens)
        payment = Payment(
            self._room, worst, log, _sending(line.sends_to, request, shown), journal=self.journal
        )
        reservation = await self._room.reserve(worst, log)
        started = self.clock.monotonic()
        try:
            payment.begin(reservation)
            reply, attempts = await line.endpoint.run(
                payment.attempt,
                on_retry=payment.retried,
                tokens=prompt + request.max_tokens,
                used=_tokens_of,
            )
        except BaseException as error:
            payment.fail(error, self.clock.monotonic() - started)
            raise
        cost = tariff.cost(reply)
        attempts += reply.requests - 1
        paid = payment.settle(
            reply.usage,
            cost,
            attempts,
            unsettled=tariff.unsettled(reply, prompt, request.max_tokens),
        )
        answer = _answer(reply=reply, key=key, cost=cost, attempts=attempts, source="paid")
        step_aside()  # the intent of whoever takes the place is written, and this answer with it
        try:
            await self.journal.answer(key, reply, paid)
        finally:  # it is paid, also where somebody stops waiting for the disk
            log.finished(answer, self.clock.monotonic() - started)
        return answer

    def foresee(self, model: Model, request: ModelRequest, *, ordinal: int = 0) -> Foreseen:
        """Return what `ask` would do with a request, without asking.

        Raises:
            ModelError: it would be refused before it leaves.
        """
        line = self._line(model)
        key, prompt = line.keys.of(request, ordinal), self._checked(line, request)
        return Foreseen(key=key, prompt=prompt, filed=self.journal.find(key) is not None)

    def _checked(self, line: _Line, request: ModelRequest) -> int:
        """Return the tokens of a prompt; refuse what can never be answered."""
        if request.tools or request.tool_choice is not None:
            check_tools(request)
        prompt = estimate_request(request, self._count)
        check_window(line.model, request, prompt, exact=self._count is not estimate)
        line.endpoint.check(prompt + request.max_tokens)
        return prompt

    def void(self, answer: Answer, why: str) -> None:
        """Take back an answer that turned out to be of no use: the next session asks again."""
        self.journal.void(answer.key, why)

    def endpoint(self, model: Model) -> Endpoint:
        """Return the endpoint of a model: one for all its callers."""
        info = model.info
        found = self._endpoints.get(info)
        if found is None:
            cap = min(self._concurrency, info.max_concurrency or self._concurrency)
            found = self._endpoints[info] = Endpoint(
                cap=cap,
                retry=self._retry,
                clock=self.clock,
                allowance=self._allowance,
                limits=self._limits,
                warn=self._warned,
            )
        return found

    def _line(self, model: Model) -> _Line:
        found = self._lines.get(id(model))
        if found is None:
            info = model.info
            sends_to = model if self._outlet is None else self._outlet.model(model)
            if (event := met(sends_to, self.clock, self._prices)) is not None:
                self.emit(event)
            found = self._lines[id(model)] = _Line(
                model=model,
                sends_to=sends_to,
                spec=info.spec,
                endpoint=self.endpoint(model),
                tariff=Tariff(self._prices, info),
                keys=CallKeys(sends_to.info),
            )
        return found

    def recheck(self) -> None:
        """Let those look again who wait for room: the allowance was given more, or ends."""
        self._room.tell()

    def halt(self, halted: Halted) -> None:
        """Let no further request leave; those in flight are answered, and those that wait raise it."""
        self._room.close(halted)

    @property
    def sent(self) -> int:
        """Requests that left in this session."""
        return self._room.sent

    def tell_pace(self) -> None:
        """Warn of the rates that servers were found to bear, where they have refused calls."""
        for endpoint in self._endpoints.values():
            if (advice := endpoint.advice) is not None:
                self._warned("pace", advice)

    def _warned(self, code: str, message: str) -> None:
        self.emit(Warned(node=_ROOT, at=self.clock.now(), code=code, message=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What is found out once for a model object, and needed by each of its calls."""

    model: Model
    """It stays alive with the line, which is found by its identity."""
    sends_to: Model
    spec: str
    endpoint: Endpoint
    tariff: Tariff
    keys: CallKeys


class _Flight:
    """An identical call in progress, for those who come while it flies."""

    __slots__ = ("_landed", "answer", "error")

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.error: ModelError | Halted | None = None
        self._landed: anyio.Event | None = None

    async def landing(self) -> None:
        """Wait for the end."""
        if self._landed is None:  # most calls have no twin, and an event costs
            self._landed = anyio.Event()
        await self._landed.wait()

    def land(self) -> None:
        """Let those go on who wait."""
        if self._landed is not None:
            self._landed.set()


def _sending(
    model: Model, request: ModelRequest, shown: Shown | None
) -> Callable[[], Awaitable[ModelReply]]:
    """Return what sends a request once."""
    if shown is None:
        return partial(invoke, model, request)

    async def send() -> ModelReply:
        shown.begin()
        return await invoke(model, request, shown.piece)

    return send


def _heard(answer: Answer, shown: Shown | None) -> Answer:
    """Return an answer once whoever watches it has heard all of it."""
    if shown is not None:
        shown.whole(answer.reply.text)
    return answer


def _filed(found: Filed | ModelError, key: ContentKey, log: CallLog) -> Answer:
    """Return what was paid for before; raise the failure that a replay repeats."""
    if isinstance(found, ModelError):
        found.attempts = 0
        log.refused(found)
        raise found
    answer = Answer(reply=found.reply, key=key, cost=Decimal(0), attempts=0, source="journal")
    log.finished(answer, 0.0)
    return answer


def _shared(answer: Answer, log: CallLog) -> Answer:
    shared = replace(answer, cost=Decimal(0), attempts=0, source="shared")
    log.finished(shared, 0.0)
    return shared


def _tokens_of(reply: ModelReply) -> int | None:
    return reply.usage.total
