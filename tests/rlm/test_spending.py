"""What was spent and what was saved stand apart, and each event knows its place."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from corpus.events import WindowFinished
from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import CallFinished, Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.journal.journal import RunJournal
from executors.messages import Message, ModelReply, ModelRequest
from executors.usage import Usage
from rlm import Completed, close, count_sync
from rlm.events import NodeStarted
from rlm.receipts.receipts import ReceiptFold
from rlm.testing import ScriptedModel, judge_script

ASK = ModelRequest(messages=(Message(role="user", content="once"),), max_tokens=9)
REPLY = ModelReply(text="ok", stop="end", usage=Usage(input=5, output=2))


@pytest.mark.anyio
@pytest.mark.case("K8-20")
async def test_the_same_prompt_again_is_saved_and_never_counted_as_spent(tmp_path: Path) -> None:
    fold, clock = ReceiptFold(), SystemClock()
    allowance = CapsAllowance(Caps(), clock)
    model = ScriptedModel(lambda _: REPLY, latency=0.01)
    for _ in range(2):  # two sessions
        journal = await anyio.to_thread.run_sync(RunJournal.open, tmp_path)
        calls = Calls(allowance=allowance, emit=fold, clock=clock, journal=journal)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(_ask, calls, model)
        await _ask(calls, model)
        await journal.aclose()
    totals = fold.receipts(tmp_path, {}).totals
    assert model.calls == 1
    assert (totals.calls, totals.tokens, totals.shared) == (1, 7, 2)
    assert totals.replayed == 5  # one in the first session, four in the second
    assert allowance.drawn.tokens == 7


async def _ask(calls: Calls, model: ScriptedModel) -> None:
    await calls.ask(model, ASK, role="judge", node=NodeId("root"))


@pytest.mark.case("K9-20")
def test_events_of_counts_in_many_threads_keep_to_their_own_run_and_node(tmp_path: Path) -> None:
    def one(number: int) -> list[Event]:
        heard: list[Event] = []
        texts = [f"{'fire' if n % 5 == 0 else 'calm'} {number} {n}" for n in range(60)]
        outcome = count_sync(
            f"fire {number}?",
            texts,
            model=ScriptedModel(judge_script(lambda text: "fire" in text), latency=0.002),
            run=tmp_path / str(number),
            on_event=heard.append,
        )
        assert isinstance(outcome, Completed)
        assert outcome.result.count == 12
        assert outcome.receipts.task == f"fire {number}?"
        return heard

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(one, range(4)))
    close()
    for heard in runs:
        begun: set[str] = set()
        for event in heard:
            if isinstance(event, NodeStarted):
                parent = event.node.rpartition(".")[0]
                assert not parent or parent in begun
                begun.add(event.node)
            if isinstance(event, WindowFinished):
                assert event.node == f"root.2.{event.pass_index}"
        assert sum(isinstance(event, CallFinished) for event in heard) == 16
