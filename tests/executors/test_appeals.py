"""Where there is no room for good, whoever may give more is asked, once for all who wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import anyio
import pytest

from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.errors import Halted
from executors.gate.allowance import (
    Caps,
    CapsAllowance,
    Estimate,
    Full,
    Reservation,
    Tag,
)
from executors.ids import NodeId
from executors.models.base import Model
from executors.models.fakes.scripted import ScriptedModel
from tests.executors.asks import ask
from tests.executors.benches import reply

pytestmark = pytest.mark.anyio


class Generous(CapsAllowance):
    """Raises the cap of calls by what `answer` says, each time that somebody appeals."""

    def __init__(self, calls: int, answer: Callable[[int], int]) -> None:
        super().__init__(Caps(calls=calls), VirtualClock())
        self.answer = answer
        self.appeals: int = 0
        self.tags: list[tuple[str, str, str]] = []

    def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
        got = super().reserve(estimate, tag=tag)
        if isinstance(got, Reservation) and got.tag is not None:
            self.tags.append((got.tag.role, got.tag.node, got.tag.model))
        return got

    async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
        assert (halted.bound, estimate.calls) == ("calls", 1)
        self.appeals += 1
        await anyio.lowlevel.checkpoint()  # others come by while a person thinks
        more = self.answer(self.appeals)
        self.caps = replace(self.caps, calls=self.caps.calls + more)
        return more > 0


def pipeline(allowance: CapsAllowance) -> tuple[Calls, ScriptedModel]:
    model = ScriptedModel(lambda _: reply(1))
    return Calls(allowance=allowance, emit=lambda _: None, clock=VirtualClock()), model


async def crowd(calls: Calls, model: Model, size: int) -> int:
    """Ask so many at once; return how many were halted."""
    halts = 0

    async def one(n: int) -> None:
        nonlocal halts
        try:
            await calls.ask(model, ask(f"item {n}"), role="judge", node=NodeId("root.1"))
        except Halted:
            halts += 1

    async with anyio.create_task_group() as group:
        for n in range(size):
            group.start_soon(one, n)
    return halts


async def test_who_is_given_more_goes_on_and_so_do_all_who_wait() -> None:
    allowance = Generous(2, lambda _: 100)
    calls, model = pipeline(allowance)
    assert await crowd(calls, model, 20) == 0
    assert (allowance.appeals, model.calls) == (1, 20)


async def test_who_is_given_nothing_is_halted() -> None:
    allowance = Generous(2, lambda _: 0)
    calls, model = pipeline(allowance)
    assert await crowd(calls, model, 5) == 3
    assert model.calls == 2


async def test_one_allow_lets_one_call_go() -> None:
    allowance = Generous(2, lambda n: 1 if n == 1 else 0)
    calls, model = pipeline(allowance)
    assert await crowd(calls, model, 5) == 2
    assert model.calls == 3


async def test_a_call_does_not_appeal_for_ever_where_what_it_is_given_is_no_room() -> None:
    class Vain(Generous):
        async def appeal(self, halted: Halted, estimate: Estimate) -> bool:
            self.appeals += 1
            return True

    allowance = Vain(0, lambda _: 0)
    calls, model = pipeline(allowance)
    with pytest.raises(Halted, match="the calls bound"):
        await calls.ask(model, ask(), role="judge", node=NodeId("root"))
    assert (allowance.appeals, model.calls) == (5, 0)


async def test_each_reservation_says_whose_call_it_is() -> None:
    allowance = Generous(5, lambda _: 0)
    calls, model = pipeline(allowance)
    await calls.ask(model, ask(), role="verifier", node=NodeId("root.2"))
    assert allowance.tags == [("verifier", "root.2", model.info.spec)]


async def test_room_that_others_make_elsewhere_is_looked_for_after_a_while() -> None:
    class Shared(Generous):
        def reserve(self, estimate: Estimate, *, tag: Tag | None = None) -> Reservation | Full:
            got = super().reserve(estimate, tag=tag)
            if isinstance(got, Reservation):
                return got
            self.appeals += 1
            if self.appeals == 3:  # another process gave something back
                self.caps = replace(self.caps, calls=1)
            return Full(halted=got.halted, final=False, again=0.001)

    allowance = Shared(0, lambda _: 0)
    calls, model = pipeline(allowance)
    await calls.ask(model, ask(), role="judge", node=NodeId("root"))
    assert (allowance.appeals, model.calls) == (3, 1)


class Elsewhere:
    """An outlet that sends to another model, or nowhere."""

    def __init__(self, to: Model | None) -> None:
        self.to = to
        self.asked = 0

    def model(self, model: Model) -> Model:
        self.asked += 1
        if self.to is None:
            raise Halted(bound="data.allowHosts", scope="run", limit=model.info.spec)
        return self.to


async def test_an_outlet_decides_once_a_model_where_its_texts_go() -> None:
    named, other = ScriptedModel("from the named one"), ScriptedModel("from the other one")
    outlet = Elsewhere(other)
    calls = Calls(
        allowance=CapsAllowance(Caps(usd=Decimal(1)), VirtualClock()),
        emit=lambda _: None,
        clock=VirtualClock(),
        outlet=outlet,
    )
    for text in ("a", "b"):
        answer = await calls.ask(named, ask(text), role="judge", node=NodeId("root"))
        assert answer.reply.text == "from the other one"
    assert (outlet.asked, named.calls, other.calls) == (1, 0, 2)


async def test_where_no_text_may_go_nothing_is_sent() -> None:
    model = ScriptedModel("never")
    calls = Calls(
        allowance=CapsAllowance(Caps(), VirtualClock()),
        emit=lambda _: None,
        clock=VirtualClock(),
        outlet=Elsewhere(None),
    )
    with pytest.raises(Halted, match=r"data\.allowHosts"):
        await calls.ask(model, ask(), role="planner", node=NodeId("root"))
    assert model.calls == 0
