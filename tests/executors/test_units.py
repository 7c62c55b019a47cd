"""Units as they travel, the line they have, and the lanes that carry them."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

import executors.engine.dask as engine_module
import rlm.units
from executors.engine.dask import DaskEngine
from executors.engine.dask_address import Joined, Local, address_of, place_of
from executors.engine.unit_host import HostLine
from executors.engine.units import (
    Line,
    UnitDone,
    UnitFailed,
    UnitLost,
    UnitReport,
    UnitSpec,
    entry_of,
)
from executors.errors import ConfigError, Halted, InternalError, MissingExtra, ValidationError

pytestmark = pytest.mark.anyio


def spec(name: str = "one", **part: str) -> UnitSpec:
    entry = "rlm.units:judge_block"
    return UnitSpec(id=name, entry=entry, part=part, options={"a": [1]}, lease={"slots": 1})


# ---------------------------------------------------------------- values


def test_a_unit_travels_as_json() -> None:
    assert UnitSpec.of_json(spec(first="é").to_json()) == spec(first="é")


@pytest.mark.case("S36")
def test_a_unit_points_at_records_and_holds_none() -> None:
    with pytest.raises(InternalError, match=r"takes 5,\d+ bytes"):
        spec(text="x" * 5_000)


@pytest.mark.parametrize("entry", ["os:system", "subprocess:run", "rlmx.units:judge_block", ""])
def test_a_unit_names_a_function_of_ours_and_no_other(entry: str) -> None:
    with pytest.raises(ConfigError, match="no function of ours"):
        entry_of(entry)


@pytest.mark.parametrize("entry", ["rlm.units:nothing", "rlm.nowhere:judge_block"])
def test_a_function_that_is_not_there_says_what_to_install(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot import") as raised:
        entry_of(entry)
    assert "same version" in str(raised.value)


# ---------------------------------------------------------------- which cluster


@pytest.mark.parametrize(
    ("engine", "place"),
    [
        ("dask:3", Local(workers=3)),
        ("dask://10.0.0.7:8786", Joined(host="10.0.0.7", port=8786)),
        ("dask://[::1]:8786/", Joined(host="[::1]", port=8786)),
    ],
)
def test_an_engine_names_a_cluster(engine: str, place: Local | Joined) -> None:
    assert place_of(engine) == place


@pytest.mark.parametrize(
    "engine", ["ray", "dask:0", "dask://host", "dask://host:0", "dask://u@h:1"]
)
def test_what_names_no_cluster_is_quoted_with_the_choices(engine: str) -> None:
    with pytest.raises(ValidationError, match="dask://HOST:PORT") as raised:
        place_of(engine)
    assert repr(engine) in str(raised.value)


def test_a_cluster_on_another_machine_wants_tls() -> None:
    there = Joined(host="10.0.0.7", port=8786)
    with pytest.raises(ConfigError, match="not set up for TLS"):
        address_of(there, tls=False, environ={})
    assert address_of(there, tls=True, environ={}) == "tls://10.0.0.7:8786"
    assert address_of(there, tls=False, environ={"RLM_DASK_PLAIN": "1"}) == "tcp://10.0.0.7:8786"
    assert address_of(Joined(host="localhost", port=1), tls=False, environ={}).startswith("tcp:")


# ---------------------------------------------------------------- the line


async def test_what_has_no_answer_yet_is_told_again() -> None:
    """A reply that was lost on the wire costs nothing."""
    line, answers = HostLine(), list[bytes]()

    async def ask() -> None:
        answers.append(await line.ask("more", b"x"))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        first, _ = await line.exchange({}, 1.0)
        again, _ = await line.exchange({}, 1.0)
        assert first == again == [(0, "more", b"x")]
        await line.exchange({0: b"y"}, 0.0)
    assert answers == [b"y"]


async def test_words_that_came_early_are_heard() -> None:
    line, heard = HostLine(), list[str]()
    line.say("stop", b"")
    line.on_word(lambda what, _: heard.append(what))
    line.say("go", b"")
    assert heard == ["stop", "go"]


# ---------------------------------------------------------------- lanes

Function = Callable[..., Awaitable[object]]


class Future:
    """A unit that runs in this process."""

    def __init__(self) -> None:
        self.status = "pending"
        self.error: BaseException | None = None
        self.over = anyio.Event()

    async def exception(self) -> BaseException | None:
        await self.over.wait()
        return self.error


class KilledWorker(Exception):
    """As dask's own is called."""


class Cluster:
    """What of dask's client is used, over workers that are names."""

    def __init__(self, *workers: str) -> None:
        self.crew = set(workers)
        self.group: anyio.abc.TaskGroup
        self.running: dict[str, tuple[anyio.CancelScope, Future]] = {}

    async def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.crew, 1)

    def submit(self, function: Function, text: str, workers: list[str], **_: object) -> Future:
        future = Future()
        self.group.start_soon(self._run, function, text, workers[0], future)
        return future

    async def _run(self, function: Function, text: str, worker: str, future: Future) -> None:
        with anyio.CancelScope() as scope:
            self.running[worker] = scope, future
            try:
                await function(text)
                future.status = "finished"
            except (InternalError, ConfigError, RuntimeError) as error:
                future.status, future.error = "error", error
        if scope.cancelled_caught:
            future.status, future.error = "error", KilledWorker()
        future.over.set()

    def kill(self, worker: str) -> None:
        self.crew.discard(worker)
        self.running[worker][0].cancel()

    async def run(
        self, function: Function, *args: object, workers: list[str], on_error: str = ""
    ) -> dict[str, object]:
        if not set(workers) <= self.crew:
            raise OSError("the worker is gone")
        if function.__name__ == "greet":
            return dict.fromkeys(workers, "1")
        return {workers[0]: await function(*args)}

    async def cancel(self, futures: list[Future], *, force: bool) -> None:
        pass


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster("a", "b")

    @asynccontextmanager
    async def there(_place: object) -> AsyncGenerator[Cluster]:
        async with anyio.create_task_group() as made.group:
            yield made
            made.group.cancel_scope.cancel()

    monkeypatch.setattr(engine_module, "cluster", there)
    monkeypatch.setattr(engine_module, "_LOOK", 0.01)
    return made


def engine(**more: float) -> DaskEngine:
    return DaskEngine(Local(workers=2), module="m", version="1", **more)


async def silent(_unit: str, _what: str, _body: bytes) -> bytes:
    return b""


async def units(count: int, taken: list[str] | None = None) -> AsyncIterator[UnitSpec]:
    for n in range(count):
        if taken is not None:
            taken.append(str(n))
        yield spec(str(n))


@pytest.mark.case("S36")
async def test_never_more_units_are_out_than_twice_the_workers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(unit: UnitSpec, line: Line) -> UnitReport:
        await anyio.sleep(0)
        return UnitReport(value={"id": unit.id})

    monkeypatch.setattr(rlm.units, "judge_block", work)
    taken, done, most = list[str](), set[str](), 0
    async with engine() as dask:
        async for result in dask.run(units(500, taken), silent):
            most = max(most, len(taken) - len(done))
            assert isinstance(result, UnitDone)
            assert result.report.value == {"id": result.unit}
            done.add(result.unit)
    assert len(done) == 500
    assert most <= 4


async def test_a_unit_of_a_dead_worker_is_lost_and_the_others_go_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(unit: UnitSpec, line: Line) -> UnitReport:
        if unit.id == "0":
            cluster.kill(next(iter(cluster.running)))
            await anyio.sleep(60)
        return UnitReport(value={})

    monkeypatch.setattr(rlm.units, "judge_block", work)
    async with engine() as dask:
        results = [result async for result in dask.run(units(20), silent)]
    lost = [result.unit for result in results if isinstance(result, UnitLost)]
    assert len(results) == 20
    assert len(lost) == 1


async def test_what_a_unit_raises_comes_back_as_a_value(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(unit: UnitSpec, line: Line) -> UnitReport:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(rlm.units, "judge_block", work)
    async with engine() as dask:
        (result,) = [result async for result in dask.run(units(1), silent)]
    assert isinstance(result, UnitFailed)
    assert "RuntimeError: no such thing" in result.error.what


async def test_a_run_without_workers_waits_a_while_and_ends(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(unit: UnitSpec, line: Line) -> UnitReport:
        for worker in ("a", "b"):
            if worker in cluster.running:
                cluster.kill(worker)
        await anyio.sleep(60)
        return UnitReport(value={})

    monkeypatch.setattr(rlm.units, "judge_block", work)
    lost: list[bool] = []

    async def through() -> None:
        async for result in dask.run(units(50), silent):
            lost.append(isinstance(result, UnitLost))  # noqa: PERF401 - it raises in the middle

    async with engine(patience=0.1) as dask:
        with pytest.raises(Halted, match=r"none for 0\.1 s"):
            await through()
    assert lost
    assert all(lost)


async def test_a_unit_asks_and_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(unit: UnitSpec, line: Line) -> UnitReport:
        told = anyio.Event()
        line.on_word(lambda what, body: told.set())
        said = await line.ask("question", b"why")
        await told.wait()
        return UnitReport(value={"said": said.decode()})

    async def answer(unit: str, what: str, body: bytes) -> bytes:
        assert (what, body) == ("question", b"why")
        cluster.group.start_soon(dask.tell, unit, "stop")
        return b"because"

    monkeypatch.setattr(rlm.units, "judge_block", work)
    async with engine() as dask:
        (result,) = [result async for result in dask.run(units(1), answer)]
    assert isinstance(result, UnitDone)
    assert result.report.value == {"said": "because"}


async def test_without_dask_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match="'dask'"):
        async with engine():
            pass
