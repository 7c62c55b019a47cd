"""The line in front of an endpoint: whatever happens in it, nobody is forgotten."""

from contextlib import suppress
from dataclasses import dataclass
from random import Random

import anyio
from hypothesis import example, given
from hypothesis import strategies as st

from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import Endpoint, RetryPolicy
from executors.errors import Halted, ModelError, RateLimited, ServerFault
from executors.gate.allowance import Caps, CapsAllowance, Estimate
from tests.support.hasty import LoopClock, run_hastily


@dataclass(frozen=True)
class Caller:
    """Comes at a moment, may give up after a while, and meets these failures before its answer."""

    comes: float
    patience: float
    takes: float
    failures: tuple[str, ...]


CALLERS = st.builds(
    Caller,
    comes=st.floats(0.0, 3.0),
    patience=st.sampled_from([0.0, 0.5, 2.0, 1e6]),
    takes=st.sampled_from([0.0, 0.3, 1.5]),
    failures=st.lists(st.sampled_from(["429", "429 in 1 s", "503", "fatal"]), max_size=6).map(
        tuple
    ),
)


def failure(kind: str) -> ModelError:
    match kind:
        case "429":
            return RateLimited("429")
        case "429 in 1 s":
            return RateLimited("429", retry_after=1.0)
        case "503":
            return ServerFault("503")
        case _:
            return ModelError("fatal")


async def quietly(tries: int, error: ModelError, wait: float) -> None:
    pass


@given(
    callers=st.lists(CALLERS, max_size=12),
    cap=st.integers(1, 3),
    limits=st.sampled_from([None, Limits(rpm=60.0), Limits(rpm=600.0, tpm=3_000.0)]),
    deadline=st.sampled_from([2.0, 40.0, 1e6]),
    resized=st.booleans(),
)
@example(
    callers=[Caller(0.0, 1e6, 0.3, ("429",)), Caller(0.0, 0.5, 0.3, ())],
    cap=1,
    limits=None,
    deadline=1e6,
    resized=False,
)
def test_every_caller_ends_and_every_slot_comes_back(
    callers: list[Caller], cap: int, limits: Limits | None, deadline: float, resized: bool
) -> None:
    """The loop of this test complains as soon as all wait for something that cannot come."""

    async def scenario() -> None:
        clock = LoopClock()
        allowance = CapsAllowance(Caps(seconds=deadline), clock)
        allowance.reserve(Estimate(tokens=0, usd=None))  # the clock of the run starts
        shared = Endpoint(
            cap=cap,
            retry=RetryPolicy(),
            clock=clock,
            random=Random(1),
            allowance=allowance,
            limits=limits,
        )
        in_flight = ended = 0

        async def call(caller: Caller) -> None:
            nonlocal in_flight, ended
            turns = iter(caller.failures)

            async def attempt() -> str:
                nonlocal in_flight
                in_flight += 1
                assert in_flight <= cap
                assert clock.monotonic() < deadline + 1e-6
                try:
                    await clock.sleep(caller.takes)
                finally:
                    in_flight -= 1
                for kind in turns:
                    raise failure(kind)
                return "ok"

            await clock.sleep(min(caller.comes, deadline - 1.0))
            with anyio.move_on_after(caller.patience) as scope:
                with suppress(ModelError, Halted):
                    await shared.run(attempt, on_retry=quietly, tokens=40, used=len)
            ended += 1
            assert scope.cancelled_caught or clock.monotonic() <= deadline + 2.0

        async with anyio.create_task_group() as group:
            for caller in callers:
                group.start_soon(call, caller)
            if resized:
                await clock.sleep(1.0)
                shared.resize(cap=cap, limits=Limits(rpm=30.0))
        assert ended == len(callers)
        assert shared._slots.taken == 0
        assert not shared._turns.waiting
        assert shared._turns._keeper is None

    run_hastily(scenario)
