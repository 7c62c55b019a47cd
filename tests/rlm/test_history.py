"""Events are read back from a file that anything may have happened to."""

import json
from pathlib import Path

import pytest

from executors.events import Warned
from rlm import Caps, Completed, count
from rlm.events import NodeStarted
from rlm.resuming import resume
from rlm.runs.history import Unknown, read_event
from rlm.testing import ScriptedModel, judge_script

STARTED = {"kind": "node_started", "node": "root.0", "at": "2026-01-31T09:45:00Z", "name": "read"}


def line(**changes: object) -> bytes:
    return json.dumps({**STARTED, **changes}).encode("ascii")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[" * 200_000,
        b"\xff\xfe",
        line(kind=["node_started"]),
        line(kind="of a newer version"),
        line(node="root.2\u2028" + "0"),
        line(node="root." + "9" * 5_000),
        line(node="elsewhere"),
        line(node=None),
        line(at="yesterday"),
        line(name=7),
    ],
)
def test_what_is_no_event_of_ours_is_unknown_and_belongs_to_a_node(raw: bytes) -> None:
    event = read_event(raw)
    assert isinstance(event, Unknown)
    assert event.raw == raw
    assert event.node in {"root", "root.0"}


def test_half_a_character_is_read_as_a_question_mark_and_a_whole_one_as_itself() -> None:
    half = read_event(line(name="a\ud800b"))
    whole = read_event(line(name="\U0001f525"))
    assert isinstance(half, NodeStarted)
    assert isinstance(whole, NodeStarted)
    assert (half.name, whole.name) == ("a?b", "\U0001f525")


@pytest.mark.anyio
async def test_a_run_goes_on_whatever_a_line_of_its_log_says(tmp_path: Path) -> None:
    records = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(40)]
    run, model = tmp_path / "run", ScriptedModel(judge_script(lambda text: "fire" in text))
    await count("fire?", records, model=model, run=run, caps=Caps(calls=4))
    with (run / "events.jsonl").open("ab") as log:
        log.write(line(node="root.2\u2028" + "0") + b"\n")
        log.write(line(node="root.7", name="a\ud800b") + b"\n")
        warned = {"kind": Warned.kind, "code": "x\ud800", "message": "\udfff", "count": 1}
        log.write(json.dumps({**warned, "node": "root", "at": STARTED["at"]}).encode() + b"\n")
    outcome = await resume(run, model=model, caps=Caps(calls=100))
    assert isinstance(outcome, Completed)
    assert outcome.receipts.totals.calls == 10
