"""An audit that is lost while a run goes on: what was paid is kept, and nothing is called complete."""

import shutil
from pathlib import Path

import pytest

import rlm
from executors.messages import ModelReply, ModelRequest
from rlm.testing import ScriptedModel
from tests.rlm.trees import cast, said

pytestmark = pytest.mark.anyio
LOSSES = pytest.mark.parametrize("what", ["audit.jsonl", "."])


def lose(run: Path, what: str) -> None:
    place = run / "gate" / what
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@LOSSES
async def test_a_count_keeps_what_was_paid(tmp_path: Path, what: str) -> None:
    run = tmp_path / "run"

    def judges(request: ModelRequest) -> ModelReply:
        lose(run, what)
        return said('{"1": "yes"}')

    records = [(str(n), f"text {n}") for n in range(6)]
    outcome = await rlm.count(
        "is it?", records, model=ScriptedModel(judges), run=run, gate={}, window=1, passes=1
    )
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.best is not None
    assert outcome.receipts.totals.calls > 0


@LOSSES
async def test_a_recursion_keeps_what_was_paid(tmp_path: Path, what: str) -> None:
    run = tmp_path / "run"

    def works(request: ModelRequest) -> ModelReply:
        lose(run, what)
        return said("an answer")

    wiring = rlm.Wiring(model=cast(worker=works), gate={})
    outcome = await rlm.recurse("Say a word.", wiring, run=run)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.receipts.totals.calls > 0
