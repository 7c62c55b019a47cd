"""A canary secret, put in every place where one can stand: not one byte of it in what is written.

Written is: all files of the run (audit, journal, events, receipts, manifest, ledger), what is printed
to both streams, log records, events and outcomes as a program or a notebook shows them, tracebacks.
Not searched: what a run goes on with, and so holds as it was given: the records in the spool, the task
in the manifest (not the data of the caller), and the configuration of the gate.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import rlm
from executors import secrets
from executors.endpoint.retry import RetryPolicy
from executors.events import Event
from executors.gate.people.human import HumanEvent, Refuse, Terminate
from executors.models.fakes.acts import FakeCall
from executors.secrets import Secret
from rlm.cli.app import main
from rlm.runs.home import MANIFEST
from rlm.testing import Act, Completion, FakeServer, Received, Reply
from tests.rlm.trees import COMPLEX, SIMPLE, results_of, role_of

pytestmark = pytest.mark.anyio

CANARY = "canaryq7Zp-w4Kd-x9"
SHAPED = f"sk-{CANARY}"
"""The same with the look of a key, where nothing else tells that it is one."""
ONCE = RetryPolicy(attempts=1)
QUESTION = "is it about a fire?"
Script = Callable[[Received], Act]
WIRED = {one.name for one in fields(rlm.Wiring)}
GATE: dict[str, Any] = {
    "content": {"ask_patterns": ["delete"]},
    "budget": {"max_cost_usd": "5"},
    "audit": {"path": "auto"},
}


@dataclass
class Place:
    """A run with a canary somewhere in it, and all that came of it."""

    folder: Path
    setenv: Callable[[str, str], None]
    events: list[Event] = field(default_factory=list[Event])
    seen: list[str] = field(default_factory=list[str])
    """What a program or a person is shown."""

    asks: bool = False
    """It is in what was asked."""

    @property
    def run(self) -> Path:
        return self.folder / "run"

    async def recurse(self, act: Script, **more: Any) -> None:  # noqa: ANN401 - any option
        """Do a task with a model behind a server, under a gate."""
        wired: dict[str, Any] = {"gate": GATE, "on_event": self.events.append, "retry": ONCE}
        wired |= {name: more.pop(name) for name in tuple(more) if name in WIRED}
        task = more.pop("task", SIMPLE)
        with FakeServer(act) as server:
            wiring = rlm.Wiring(model=f"openai+{server.base_url}:fake", **wired)
            await self.tried(rlm.recurse(task, wiring, run=self.run, **more))
        assert server.requests
        await self.shown()

    async def count(self, act: Script, **more: Any) -> None:  # noqa: ANN401 - any option
        """Count records with a model behind a server, under a gate."""
        records = more.pop("records", [("r1", "a fire"), ("r2", "calm")])
        with FakeServer(act) as server:
            await self.tried(
                rlm.count(
                    more.pop("question", QUESTION),
                    records,
                    model=f"openai+{server.base_url}:fake",
                    gate=GATE,
                    run=self.run,
                    on_event=self.events.append,
                    **more,
                )
            )
        assert server.requests
        await self.shown()

    async def tried(self, doing: Awaitable[object]) -> None:
        """Wait for what comes of it, and look at it as a notebook does."""
        try:
            self.seen.append(repr(await doing))
        except rlm.RlmError as error:
            self.seen += (str(error), "".join(traceback.format_exception(error)))

    async def shown(self) -> None:
        """Look at the run as people do afterwards."""
        assert (self.run / "gate" / "audit.jsonl").stat().st_size
        await self.command("show", str(self.run))
        await self.command("gate", "log", str(self.run))

    async def command(self, *words: str) -> None:
        """Run a command line, also with its traceback."""
        for more in ((), ("--debug",)):
            assert await anyio.to_thread.run_sync(main, [*words, *more]) in {0, 2, 3, 4}


Doing = Callable[[Place], Awaitable[None]]
PLACES: dict[str, Doing] = {}


def place(doing: Doing) -> Doing:
    """Search all that this leaves behind."""
    PLACES[doing.__name__.replace("_", " ")] = doing
    return doing


# ---------------------------------------------------------------- servers and tools


def yes(received: Received) -> Act:
    """A judge's answer, and anybody else's."""
    if role_of(received.request) == "judge":
        return Completion(text=json.dumps({"verdicts": {"1": "yes", "2": "no"}}))
    return Completion(text="done")


def echo(received: Received) -> Act:
    """Repeats what the key was, as text."""
    return Completion(text=f"no verdict but {CANARY}")


def refuse(status: int) -> Callable[[Received], Act]:
    """A server that repeats the request's headers in its error."""

    def act(received: Received) -> Act:
        words = f"bad header Authorization: Bearer {CANARY}"
        body = json.dumps({"error": {"message": words, "type": "odd", "code": CANARY}})
        return Reply(status=status, body=body.encode(), headers=(("x-echo", CANARY),))

    return act


def using(name: str, **arguments: str) -> Callable[[Received], Act]:
    """A model that calls a tool once, and says what it heard."""

    def act(received: Received) -> Act:
        request = received.request
        heard = results_of(request)
        if request.tools and not heard:
            made = FakeCall(name=name, arguments=json.dumps(arguments))
            return Completion(text=None, calls=(made,), finish="tool_calls")
        return Completion(text=f"heard {heard}" if request.tools else "satisfied")

    return act


def tell(x: str) -> str:
    """Repeat it."""
    return f"{x} {CANARY}"


def fail(x: str) -> str:
    """Raise it."""
    logging.getLogger("rlm").warning("a tool failed")
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        raise ValueError(f"{x} {CANARY}") from error


TOOLS = [rlm.tool(tell), rlm.tool(fail)]


# ---------------------------------------------------------------- places


@place
async def a_variable_that_nobody_named(at: Place) -> None:
    at.setenv("OPENAI_API_KEY", CANARY)
    await at.recurse(using("tell", x="delete"), tools=[rlm.tool(tell_environment)])


def tell_environment(x: str) -> str:
    """Say which variables there are."""
    return x


@place
async def the_key_of_a_server_that_repeats_it(at: Place) -> None:
    at.setenv("MY_KEY", CANARY)
    await at.recurse(echo, key_env="MY_KEY", task=COMPLEX)


@place
async def the_key_of_a_judge_that_repeats_it(at: Place) -> None:
    at.setenv("MY_KEY", CANARY)
    await at.count(echo, key_env="MY_KEY")


def _refused(status: int) -> Doing:
    async def doing(at: Place) -> None:
        at.setenv("MY_KEY", CANARY)
        await at.recurse(refuse(status), key_env="MY_KEY")
        if status < 429:  # a count tries others again
            at.folder = at.folder / "count"
            await at.count(refuse(status), key_env="MY_KEY")

    return doing


PLACES.update(
    {f"headers in an error {n}": _refused(n) for n in (400, 401, 402, 413, 429, 500, 503)}
)


@place
async def the_user_of_a_url(at: Place) -> None:
    spec = f"openai+http://me:{CANARY}@127.0.0.1:9/v1:fake"
    await at.tried(rlm.recurse(SIMPLE, spec, run=at.run))
    records = at.folder / "r.jsonl"
    records.write_text('{"id": "1", "text": "a fire"}\n', encoding="utf-8")
    await at.command("count", str(records), QUESTION, "--model", spec, "--run", str(at.run))


@place
async def the_query_of_a_url(at: Place) -> None:
    spec = f"openai+http://127.0.0.1:9/v1?key={CANARY}:fake"
    await at.tried(rlm.recurse(SIMPLE, spec, run=at.run))
    await at.command("recurse", SIMPLE, "--model", spec, "--run", str(at.run))


@place
async def arguments_of_a_tool(at: Place) -> None:
    Secret(CANARY)
    await at.recurse(using("tell", x=f"delete {CANARY}"), tools=TOOLS)


@place
async def arguments_of_a_tool_that_are_asked_about(at: Place) -> None:
    Secret(CANARY)

    def human(event: HumanEvent) -> object:
        at.seen.append(event.shown)
        return "allow"

    await at.recurse(using("tell", x=f"delete {CANARY}"), tools=TOOLS, human=human)


@place
async def the_result_of_a_tool(at: Place) -> None:
    Secret(CANARY)
    await at.recurse(using("tell", x="y"), tools=TOOLS)


@place
async def what_a_tool_raises(at: Place) -> None:
    Secret(CANARY)
    await at.recurse(using("fail", x="y"), tools=TOOLS)


@place
async def the_name_of_a_tool(at: Place) -> None:
    Secret(CANARY)
    await at.recurse(using(CANARY, x="y"), tools=TOOLS)


@place
async def the_data_of_a_caller_by_its_name(at: Place) -> None:
    await at.recurse(using("tell_environment", x="y"), data={"api_key": CANARY}, tools=[TELL])


@place
async def the_data_of_a_caller_by_its_look(at: Place) -> None:
    await at.recurse(using("tell_environment", x="y"), data={"note": SHAPED}, tools=[TELL])


TELL = rlm.tool(tell_environment)


@place
async def a_task_that_holds_a_key(at: Place) -> None:
    Secret(CANARY)
    at.asks = True
    await at.recurse(yes, task=f"{COMPLEX} with {CANARY}", context=f"use {CANARY}")


@place
async def a_question_that_holds_a_key(at: Place) -> None:
    Secret(CANARY)
    at.asks = True
    await at.count(yes, question=f"is it about {CANARY}?")


@place
async def a_record_that_holds_a_key(at: Place) -> None:
    Secret(CANARY)
    records = [(f"r{n}", f"a fire {CANARY}") for n in range(3)]
    await at.count(yes, records=records)


@place
async def what_a_person_replies(at: Place) -> None:
    Secret(CANARY)
    for number, reply in enumerate((Refuse(reason=CANARY), Terminate(reason=CANARY), CANARY)):
        await Place.recurse(
            Place(at.folder / str(number), at.setenv, at.events, at.seen),
            using("tell_environment", x="delete"),
            tools=[TELL],
            human=partial(_answer, reply),
        )


def _answer(reply: object, _: HumanEvent) -> object:
    return reply


@place
async def what_asking_a_person_raises(at: Place) -> None:
    Secret(CANARY)

    def human(_: HumanEvent) -> object:
        raise ValueError(CANARY)

    await at.recurse(using("tell_environment", x="delete"), tools=[TELL], human=human)


@place
async def what_a_listener_or_a_sensor_raises(at: Place) -> None:
    Secret(CANARY)

    def raises(*_: object) -> object:
        raise ValueError(CANARY)

    await at.recurse(yes, evaluate=raises)


@place
async def a_pattern_of_the_gate(at: Place) -> None:
    Secret(CANARY)
    gate = {**GATE, "content": {"deny_patterns": [CANARY]}}
    await at.recurse(using("tell", x=CANARY), tools=TOOLS, gate=gate)


def _configured(text: str) -> Doing:
    async def doing(at: Place) -> None:
        file = at.folder / "gate.yaml"
        file.write_text(text, encoding="utf-8")
        await at.tried(rlm.recurse(SIMPLE, rlm.Wiring(gate=file), run=at.run))
        await at.command("gate", "check", str(file), "bash", "ls")
        await at.command("recurse", SIMPLE, "--gate", str(file), "--run", str(at.run))

    return doing


PLACES.update(
    {
        f"a configuration: {text}": _configured(text)
        for text in (
            f"api_key: {CANARY}",
            f"secrets: {{password: {CANARY}}}",
            f"secrets: {{env_vars: [{SHAPED}]}}",
            f"secrets: {{patterns: ['{SHAPED}(']}}",
            f"budget: {{max_cost_usd: {SHAPED}}}",
            f"net: {{allow_domains: ['https://me:{SHAPED}@example.com']}}",
            f"token: {CANARY}: {CANARY}",
            f"{SHAPED}",
        )
    }
)


# ---------------------------------------------------------------- the search


def traces(at: Place) -> Iterator[str]:
    """Yield where the canary stands."""
    root = at.folder
    while root.name != "home":
        root = root.parent
    for path in sorted(root.rglob("*")):
        inner = path.relative_to(root).as_posix()
        if CANARY in inner:
            yield f"the name {inner}"
        if not path.is_file() or "spool" in path.parts or path.name == "gate.yaml":
            continue
        if inner.endswith(("gate/config.json", "r.jsonl")) or (at.asks and path.name == MANIFEST):
            continue
        if CANARY.encode() in path.read_bytes():
            yield inner
    yield from (f"an event: {event!r}" for event in at.events if CANARY in repr(event))
    yield from (f"shown: {text}" for text in at.seen if CANARY in text)


@pytest.mark.case("K15-16", "K15-17")
@pytest.mark.parametrize("doing", PLACES.values(), ids=PLACES)
async def test_a_canary_is_in_nothing_that_is_written(
    doing: Doing,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(secrets, "_known", set[str]())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    home = tmp_path / "home"
    home.mkdir()
    at = Place(home, monkeypatch.setenv)
    await doing(at)
    out, err = capsys.readouterr()
    at.seen += (out, err, caplog.text)
    assert list(traces(at)) == []


async def test_the_search_finds_what_nobody_knows_to_be_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run with a text that is none shows where it would stand."""
    monkeypatch.setattr(secrets, "_known", set[str]())
    (tmp_path / "home").mkdir()
    at = Place(tmp_path / "home", monkeypatch.setenv)
    await at.recurse(using("tell", x=CANARY), tools=TOOLS)
    found = "\n".join(traces(at))
    for where in ("run/events.jsonl", "run/journal/", "run/gate/audit.jsonl", "shown", "an event"):
        assert where in found


async def test_data_that_holds_a_secret_is_given_again_to_go_on(tmp_path: Path) -> None:
    data: dict[str, Any] = {"login": [{"api_key": CANARY}]}
    with FakeServer(yes) as server:
        wiring = rlm.Wiring(model=f"openai+{server.base_url}:fake", data=data)
        await rlm.recurse(SIMPLE, wiring, run=tmp_path / "run")
        with pytest.raises(rlm.ConfigError, match=r"data \(secrets are in it\)"):
            await rlm.resume(tmp_path / "run")
        again = await rlm.recurse(SIMPLE, wiring, run=tmp_path / "run")
    assert isinstance(again, rlm.Completed)
