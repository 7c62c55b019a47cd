"""A model that another one answers for: the receipt names both, also where the answer is found again."""

from pathlib import Path

import pytest

import rlm
from executors.errors import ServerFault
from executors.events import CallFinished
from rlm.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_who_answered_in_place_of_another_is_in_the_receipt(tmp_path: Path) -> None:
    heard: list[str | None] = []

    def listen(event: rlm.Event) -> None:
        if isinstance(event, CallFinished):
            heard.append(event.answered_by)

    down = ScriptedModel(lambda _: ServerFault("down"), name="first")
    up = ScriptedModel("here", name="second")
    for _ in range(2):
        wiring = rlm.Wiring(model=rlm.Fallback(down, up), on_event=listen)
        outcome = await rlm.recurse("list the files", wiring, run=tmp_path / "run")
        assert isinstance(outcome, rlm.Completed)
        assert "scripted:second" in outcome.receipts.models
    assert heard == ["scripted:second", "scripted:second"]
    assert up.calls == 1
