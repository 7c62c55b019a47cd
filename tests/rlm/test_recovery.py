"""What a killed session could not tell is told by the next one: once, and from the journal."""

from pathlib import Path

import pytest

from executors.ids import content_key
from executors.journal.lines import intent_line
from rlm import Completed, Tally, count, resume
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


async def finished(run: Path) -> Completed[Tally]:
    texts = [f"{'fire' if n % 7 == 0 else 'calm'} {n}" for n in range(100)]
    outcome = await count("fire?", texts, model=judge(), run=run)
    assert isinstance(outcome, Completed)
    return outcome


async def test_calls_that_the_log_lost_are_counted_by_the_journal(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = await finished(run)
    log = run / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:20])
    model = judge()
    for _ in range(3):
        again = await resume(run, model=model)
        assert model.calls == 0
        assert again.receipts.totals.calls == first.receipts.totals.calls == 26
        assert again.receipts.totals.tokens == first.receipts.totals.tokens


async def test_a_call_that_was_in_flight_is_possibly_paid_and_told_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await finished(run)
    (segment,) = (run / "journal").glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(intent_line(content_key("lost"), 1_000, None))
    for _ in range(3):
        again = await resume(run, model=judge())
        assert again.receipts.totals.possibly_paid == 1
        assert again.receipts.totals.failed == 1
        assert (again.receipts.totals.lost, again.receipts.totals.lost_tokens) == (1, 1_000)
