"""A key is in no byte of a run, whoever of the tree repeats it."""

import json
from pathlib import Path
from typing import Any

import pytest

import rlm
from executors.events import Event
from executors.models.fakes.acts import FakeCall
from rlm.testing import Act, Completion, FakeServer, Received
from tests.rlm.trees import COMPLEX, results_of, role_of

pytestmark = pytest.mark.anyio

KEY = "canary-q7Zpq7Zpq7Zpq7Zp-x"
STEPS: list[dict[str, object]] = [
    {"id": f"s{n}", "action": f"list {KEY} {n}", "depends_on": []} for n in range(2)
]
TEXTS = {
    "planner": json.dumps({"steps": STEPS}),
    "verifier": json.dumps({"critique": KEY, "suggestions": [KEY], "status": "failed"}),
    "merge": f"merged {KEY}",
    "judge": f"no verdict but {KEY}",
}
ECHOED = json.dumps({"x": KEY})


def echoes(received: Received) -> Act:
    """A server that repeats the key wherever text can stand."""
    request = received.request
    if (text := TEXTS.get(role_of(request))) is not None:
        return Completion(text=text)
    if request.tools and not results_of(request):
        handed = FakeCall(name="spawn_child", arguments=json.dumps({"subtask": f"list {KEY}"}))
        told, unknown = FakeCall(name="tell", arguments=ECHOED), FakeCall(name=KEY, arguments="{}")
        calls = (handed, told, unknown, FakeCall(name="fail", arguments=ECHOED))
        return Completion(text=KEY, calls=calls, finish="tool_calls")
    return Completion(text=f"answer {KEY} {results_of(request)}")


def tell(x: str) -> str:
    """Repeat it."""
    return f"{x} {KEY}"


def fail(x: str) -> str:
    """Raise it."""
    raise ValueError(x + KEY)


def no(*_: object) -> object:
    return {"pass": False, "critique": KEY}


def raises(*_: object) -> object:
    raise ValueError(KEY)


TOOLS = [rlm.tool(tell), rlm.tool(fail)]
RECORDS = [(f"r{n}", "a report") for n in range(3)]


@pytest.mark.parametrize(
    "options",
    [
        {"tools": TOOLS, "contract": "all of it"},
        {"count": 2, "synthesize": "merge", "contract": "all of it"},
        {"count": 2, "refine_leaf": rlm.RefineLeaf(sensor=no)},
        {"count": 2, "synthesize": raises},
        {"corpus": RECORDS, "retrieval": "scan"},
    ],
)
async def test_a_key_that_is_repeated_stands_in_no_file_event_or_outcome(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    events: list[Event] = []
    with FakeServer(echoes) as server:
        model = f"openai+{server.base_url}:fake"
        wiring = rlm.Wiring(model=model, key_env="A_KEY", on_event=events.append)
        outcome = await rlm.recurse(COMPLEX, wiring, run=tmp_path / "run", **options)
    assert server.requests > 1
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
    assert [event for event in events if KEY in repr(event)] == []
    assert KEY not in repr(outcome)
