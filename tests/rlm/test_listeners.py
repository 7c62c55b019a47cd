"""A listener of the caller's never costs a result."""

from functools import partial

import pytest

import rlm
from executors.events import CallFinished, Event, Warned
from executors.models.fakes.scripted import ScriptedModel
from rlm.testing import judge_script

pytestmark = pytest.mark.anyio


async def test_a_listener_that_raises_loses_neither_a_paid_reply_nor_the_result() -> None:
    heard: list[Event] = []

    def faulty(event: Event) -> None:
        heard.append(event)
        if event.kind == "call_finished":
            raise RuntimeError("the chart is gone")

    outcome = await rlm.count(
        "fire?",
        [f"fire {n}" if n % 2 else f"calm {n}" for n in range(40)],
        model=ScriptedModel(judge_script(lambda text: "fire" in text)),
        passes=1,
        on_event=faulty,
    )
    assert isinstance(outcome, rlm.Completed)
    assert outcome.result.count == 20
    assert sum(isinstance(event, CallFinished) for event in heard) == 1
    assert not any(isinstance(event, Warned) for event in heard)
    told = "on_event raised RuntimeError: the chart is gone; it heard nothing after that"
    assert [w for node in outcome.receipts.nodes for w in node.warnings] == [told]


class _AsyncCall:
    async def __call__(self, event: Event) -> None: ...


async def _listen(event: Event) -> None: ...


@pytest.mark.parametrize("listener", [_listen, partial(_listen), _AsyncCall()])
async def test_an_asynchronous_listener_is_refused_before_anything_is_read(
    listener: object,
) -> None:
    with pytest.raises(rlm.ValidationError, match="is asynchronous"):
        await rlm.count("fire?", ["a"], terms=("fire",), on_event=listener)  # type: ignore[arg-type]
