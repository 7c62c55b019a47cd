"""A pipeline with a scripted model, a virtual clock and everything in view."""

from decimal import Decimal

from executors.calls.calls import Answer, Calls
from executors.clock import VirtualClock
from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import RetryPolicy
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.journal.records import Journal
from executors.messages import ModelReply, ModelRequest
from executors.models.fakes.scripted import ModelScript, ScriptedModel
from executors.models.prices import Price, PriceTable
from executors.tokens import estimate_request
from executors.usage import Usage
from tests.executors.asks import ask

NODE = NodeId("root")
NOTHING = (0, 0, Decimal(0))
PRICE = Price(input=Decimal(1_000), output=Decimal(1_000))  # 0.001 USD a token


def reply(tokens: int | None = 10, text: str = "ok") -> ModelReply:
    usage = Usage() if tokens is None else Usage(input=tokens, output=0)
    return ModelReply(text=text, stop="end", usage=usage)


class Bench:
    """A pipeline with everything in view."""

    def __init__(
        self,
        script: ModelScript = "ok",
        *,
        caps: Caps | None = None,
        latency: float = 0.0,
        attempts: int = 5,
        priced: bool = False,
        concurrency: int = 16,
        journal: Journal | None = None,
        context_window: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.model = ScriptedModel(
            script, latency=latency, clock=self.clock, context_window=context_window
        )
        self.events: list[Event] = []
        self.allowance = CapsAllowance(caps or Caps(), self.clock)
        self.calls = Calls(
            allowance=self.allowance,
            emit=self.events.append,
            clock=self.clock,
            retry=RetryPolicy(attempts=attempts),
            prices=PriceTable({"scripted": PRICE}) if priced else None,
            concurrency=concurrency,
            journal=journal,
            limits=limits,
        )

    async def ask(self, request: ModelRequest | None = None, *, ordinal: int = 0) -> Answer:
        return await self.calls.ask(
            self.model, request or ask(), role="judge", node=NODE, ordinal=ordinal
        )

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def held(self) -> tuple[int, int, Decimal]:
        it = self.allowance
        return it._held_calls, it._held_tokens, it._held_usd

    def spent(self) -> tuple[int, int, Decimal]:
        it = self.allowance
        return it._calls, it._tokens, it._usd


def reserve_of(request: ModelRequest) -> int:
    return estimate_request(request) + request.max_tokens
