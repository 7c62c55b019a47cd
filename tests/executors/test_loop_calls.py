"""The tool calls of a worker: permitted, checked, run in order or side by side, and told."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import anyio
import pytest

from executors.clock import VirtualClock
from executors.engine.stop import Stop
from executors.errors import Halted
from executors.events import ToolFinished, ToolStarted
from executors.loop import Ended, Finished, Guards
from executors.models.fakes.scripted import ModelScript
from executors.replies import JsonValue
from executors.secrets import Secret
from executors.tools.base import Arguments, Tool, ToolContext
from tests.executors.workers import Shop, a_tool, call, calls, is_sealed, raising, then_done

pytestmark = pytest.mark.anyio


async def results_of(script: ModelScript, *tools: Tool, guards: Guards | None = None) -> list[str]:
    """Return what the model read of its calls."""
    shop = Shop(script, *tools, guards=guards or Guards())
    worked = await shop.work()
    assert is_sealed(worked.log.messages)
    return shop.results()


# ---------------------------------------------------------------- faults are told to the model


@pytest.mark.case("R-174")
async def test_an_unknown_tool_and_a_raising_one_are_told_and_the_work_goes_on() -> None:
    script = then_done(calls("lok", "bad"))
    read = await results_of(
        script, a_tool("look"), a_tool("bad", raising(ValueError("no such day")))
    )
    assert read == [
        "Error: there is no tool 'lok'; there are: 'look', 'bad'",
        "Error: the tool 'bad' raised ValueError: no such day",
    ]


SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["q"],
    "additionalProperties": False,
}


@pytest.mark.case("K4-10", "K4-11", "K4-13", "K4-19")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("5", "they have to be an object, not 5"),
        ('"5"', 'they have to be an object, not "5"'),
        ("null", "they have to be an object, not null"),
        ("", "'q' is a required property"),
        ("{", "they are no JSON"),
        ('{"q": NaN}', "they are no JSON: NaN is not JSON"),
        ("{}", "'q' is a required property"),
        ('{"_": {"q": "x"}}', "'_' was unexpected"),
        ('{"q": "x", "n": "three"}', "n: 'three' is not of type 'integer'"),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(
    arguments: str, complaint: str
) -> None:
    ran: list[Arguments] = []
    tool = a_tool("find", lambda given, _: ran.append(given), parameters=SCHEMA)
    shop = Shop(then_done(calls(call("find", arguments))), tool)
    await shop.work()
    (read,) = shop.results()
    assert read.startswith("Error: the arguments of the tool 'find' do not fit: ")
    assert complaint in read
    assert ran == []
    assert shop.ends() == [("find", "unfit")]


@pytest.mark.case("K4-10")
async def test_no_text_at_all_is_a_call_without_arguments() -> None:
    assert await results_of(then_done(calls(call("look", ""))), a_tool()) == ["look"]


@pytest.mark.case("K4-25")
async def test_arguments_that_are_no_object_are_replayed_as_an_empty_one() -> None:
    shop = Shop(then_done(calls(call("look", "5"), call("look", '{"n": 1}'))), a_tool())
    await shop.work()
    replayed = shop.model.requests[1].messages[2]
    assert [one.arguments for one in replayed.calls] == ["{}", '{"n": 1}']


@pytest.mark.case("R-187")
async def test_a_schema_that_points_elsewhere_fetches_nothing() -> None:
    parameters = {"type": "object", "properties": {"q": {"$ref": "https://example.com/s.json"}}}
    read = await results_of(then_done(calls(call("look", {"q": 1}))), a_tool(parameters=parameters))
    assert "cannot be held against its schema" in read[0]


async def test_a_tool_that_ends_the_process_has_failed_and_nothing_ends() -> None:
    def leaving(arguments: Arguments, context: ToolContext) -> None:
        raise SystemExit(3)

    read = await results_of(then_done(calls("leave")), a_tool("leave", leaving))
    assert read == ["Error: the tool 'leave' raised SystemExit: 3"]


async def test_a_tool_whose_own_task_was_cancelled_has_failed_and_nothing_is_cancelled() -> None:
    async def waits(arguments: Arguments, context: ToolContext) -> None:
        raise anyio.get_cancelled_exc_class()

    read = await results_of(then_done(calls("wait")), a_tool("wait", waits))
    assert read == ["Error: the tool 'wait' raised CancelledError"]


@pytest.mark.parametrize("parallel", [True, False])
async def test_a_tool_that_takes_too_long_is_cancelled_and_told(parallel: bool) -> None:
    async def hangs(arguments: Arguments, context: ToolContext) -> None:
        await anyio.sleep_forever()

    tool = a_tool("hang", hangs, parallel=parallel)
    script = then_done(calls("hang", "look"))
    read = await results_of(script, tool, a_tool(parallel=True), guards=Guards(seconds_a_tool=0.02))
    assert read == [
        "Error: the tool 'hang' did not end within 0.02 s; it was cancelled",
        "look",
    ]


async def test_a_plain_function_that_takes_too_long_is_left_behind_and_said_to_go_on() -> None:
    free = threading.Event()
    script = then_done(calls("hang"))
    tool = a_tool("hang", lambda _, __: free.wait())
    read = await results_of(script, tool, guards=Guards(seconds_a_tool=0.02))
    free.set()
    assert read == ["Error: the tool 'hang' did not end within 0.02 s; it may still have an effect"]


async def test_a_tool_that_replays_is_bounded_by_its_calls_alone() -> None:
    async def slow(arguments: Arguments, context: ToolContext) -> str:
        await anyio.sleep(0.03)
        return "child"

    tool = a_tool("spawn", slow, replays=True)
    read = await results_of(then_done(calls("spawn")), tool, guards=Guards(seconds_a_tool=0.01))
    assert read == ["child"]


# ---------------------------------------------------------------- what a tool gave


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("as it is", "as it is"),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
        (None, "null"),
        ("grün", "grün"),
        (Point(x=1), '{"x": 1}'),
        ({1: "x"}, '{"1": "x"}'),
    ],
)
async def test_text_is_read_as_it_is_and_all_else_as_json(value: object, read: str) -> None:
    assert await results_of(then_done(calls("give")), a_tool("give", lambda _, __: value)) == [read]


@pytest.mark.case("K4-7")
@pytest.mark.parametrize("value", [float("nan"), {"n": [float("inf")]}, object(), {(1, 2): 3}])
async def test_what_json_has_no_form_for_is_an_error_of_the_tool(value: object) -> None:
    (read,) = await results_of(then_done(calls("give")), a_tool("give", lambda _, __: value))
    assert read.startswith("Error: the tool 'give' gave what JSON has no form for: ")


async def test_what_contains_itself_is_an_error_of_the_tool() -> None:
    ring: list[object] = []
    ring.append(ring)
    (read,) = await results_of(then_done(calls("give")), a_tool("give", lambda _, __: ring))
    assert "no form" in read


@pytest.mark.case("K9-13")
async def test_a_long_result_keeps_its_head_and_its_tail() -> None:
    tools = [a_tool(f"t{n}", lambda _, __: "A" + "x" * 50_000 + "Z") for n in range(4)]
    read = await results_of(then_done(calls("t0", "t1", "t2", "t3")), *tools)
    assert [len(text) for text in read] == [16_000] * 4
    assert read[0][0] == "A"
    assert read[0][-1] == "Z"
    assert "50,002 characters" in read[0]


async def test_an_error_is_bounded_too() -> None:
    tool = a_tool("bad", raising(ValueError("x" * 100_000)))
    (read,) = await results_of(then_done(calls("bad")), tool, guards=Guards(result_characters=300))
    assert len(read) <= 300


async def test_controls_and_half_characters_are_shown_as_escapes() -> None:
    text = "a\x1b[2Jb\r\nc\td\ud800\u202ee"
    (read,) = await results_of(then_done(calls("give")), a_tool("give", lambda _, __: text))
    assert read == "a\\x1b[2Jb\nc\td\\ud800\\u202ee"


async def test_no_key_of_ours_reaches_the_model_or_the_events() -> None:
    canary = "canary-7f3a9c21"
    Secret(canary)
    shop = Shop(
        then_done(calls(call("give", {"k": canary}), "bad")),
        a_tool("give", lambda _, __: f"key={canary}"),
        a_tool("bad", raising(ValueError(canary))),
    )
    await shop.work()
    assert all(canary not in text for text in shop.results())
    assert canary not in repr(shop.bench.events)


async def test_what_only_looks_like_a_key_is_somebodys_data() -> None:
    text = "key-abcdefabcdefabcdef"
    assert await results_of(then_done(calls("give")), a_tool("give", lambda _, __: text)) == [text]


# ---------------------------------------------------------------- side by side


class Watched:
    """Tools that say when they begin and end, and how many are at work."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.now = self.peak = 0

    def tool(self, name: str, *, parallel: bool = True, by_path: bool = False) -> Tool:
        async def execute(arguments: Arguments, context: ToolContext) -> str:
            me = f"{name}{context.index}"
            self.log.append(f"+{me}")
            self.now += 1
            self.peak = max(self.peak, self.now)
            for _ in range(10 - context.index):  # later ones end earlier
                await anyio.lowlevel.checkpoint()
            self.now -= 1
            self.log.append(f"-{me}")
            return me

        return a_tool(name, execute, parallel=parallel, paths=_path if by_path else None)


def _path(arguments: Arguments) -> list[str]:
    return [str(arguments["path"])]


async def test_parallel_calls_run_at_once_and_their_results_stand_in_the_order_of_the_calls() -> (
    None
):
    watched = Watched()
    read = await results_of(then_done(calls("p", "p", "p")), watched.tool("p"))
    assert read == ["p0", "p1", "p2"]
    assert watched.peak == 3
    assert watched.log == ["+p0", "+p1", "+p2", "-p2", "-p1", "-p0"]


async def test_a_call_that_is_not_parallel_runs_alone_and_holds_up_those_behind_it() -> None:
    watched = Watched()
    tools = [watched.tool("p"), watched.tool("s", parallel=False)]
    await results_of(then_done(calls("p", "p", "s", "s", "p", "p")), *tools)
    assert watched.log[:4] == ["+p0", "+p1", "-p1", "-p0"]
    assert watched.log[4:8] == ["+s2", "-s2", "+s3", "-s3"]
    assert watched.log[8:] == ["+p4", "+p5", "-p5", "-p4"]


async def test_calls_that_share_a_path_run_one_after_another() -> None:
    watched = Watched()
    paths = ["a.txt", "b.txt", "./a.txt", "."]
    script = then_done(calls(*[call("w", {"path": path}) for path in paths[:3]]))
    await results_of(script, watched.tool("w", by_path=True))
    assert watched.peak == 2
    assert watched.log.index("-w0") < watched.log.index("+w2")


async def test_a_tool_that_cannot_say_what_it_touches_does_not_run() -> None:
    read = await results_of(then_done(calls("w")), a_tool("w", parallel=True, paths=_path))
    assert read == ["Error: the tool 'w' cannot say what it touches: KeyError: 'path'"]


async def test_plain_functions_run_side_by_side_too() -> None:
    both = threading.Barrier(2, timeout=5)
    tool = a_tool("meet", lambda _, __: str(both.wait() < 2), parallel=True)
    assert await results_of(then_done(calls("meet", "meet")), tool) == ["True", "True"]


async def test_one_that_fails_never_harms_its_siblings() -> None:
    tools = [a_tool("bad", raising(OSError("x")), parallel=True), a_tool(parallel=True)]
    read = await results_of(then_done(calls("look", "bad", "look")), *tools)
    assert read == ["look", "Error: the tool 'bad' raised OSError: x", "look"]


async def test_a_halt_among_parallel_calls_cancels_the_others_and_keeps_what_was_done() -> None:
    done = anyio.Event()

    async def quick(arguments: Arguments, context: ToolContext) -> str:
        done.set()
        return "kept"

    async def halting(arguments: Arguments, context: ToolContext) -> None:
        await done.wait()
        await anyio.lowlevel.checkpoint()
        raise Halted(bound="usd", scope="run", limit="1")

    async def hangs(arguments: Arguments, context: ToolContext) -> None:
        await anyio.sleep_forever()

    shop = Shop(
        [calls("quick", "hang", "halt")],
        a_tool("quick", quick, parallel=True),
        a_tool("hang", hangs, parallel=True),
        a_tool("halt", halting, parallel=True),
    )
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert worked.reason == "halted"
    assert shop.results() == ["kept", "[halted:usd]", "[halted:usd]"]
    assert shop.ends() == [("quick", "done"), ("hang", "halted"), ("halt", "halted")]


async def test_ctrl_c_inside_a_parallel_tool_reaches_the_caller_as_itself() -> None:
    tool = a_tool("p", raising(KeyboardInterrupt()), parallel=True)
    shop = Shop([calls("p", "p")], tool)
    with pytest.raises(KeyboardInterrupt):
        await shop.work()
    assert is_sealed(shop.transcript.turns)


# ---------------------------------------------------------------- tools that come and go


async def test_tools_are_asked_for_anew_before_each_round() -> None:
    offered: list[Tool] = [a_tool("first")]

    def unlocks(arguments: Arguments, context: ToolContext) -> str:
        offered.append(a_tool("second"))
        return "unlocked"

    offered[0] = a_tool("first", unlocks)
    shop = Shop(then_done(calls("first"), calls("second")), thunk=lambda: list(offered))
    await shop.work()
    assert shop.results() == ["unlocked", "second"]
    assert [[t.name for t in r.tools] for r in shop.model.requests] == [
        ["first"],
        ["first", "second"],
        ["first", "second"],
    ]


@pytest.mark.parametrize("fault", ["raises", "none", "twice"])
async def test_where_asking_for_tools_fails_the_former_ones_stay(fault: str) -> None:
    rounds = count()

    def thunk() -> list[Tool]:
        if next(rounds) == 0:
            return [a_tool()]
        if fault == "raises":
            raise OSError("gone")
        return [a_tool(), a_tool()] if fault == "twice" else None  # type: ignore[return-value]

    shop = Shop(then_done(calls("look")), thunk=thunk)
    worked = await shop.work()
    assert isinstance(worked, Finished)
    assert shop.warnings() == ["tools"]
    assert [tool.name for tool in shop.model.requests[1].tools] == ["look"]


async def test_a_halt_from_asking_for_tools_ends_it() -> None:
    def thunk() -> list[Tool]:
        raise Halted(bound="usd", scope="run", limit="1")

    worked = await Shop([], thunk=thunk).work()
    assert isinstance(worked, Ended)
    assert worked.reason == "halted"


# ---------------------------------------------------------------- events


async def test_each_call_is_told_by_a_start_and_an_end() -> None:
    canary = "canary-91b2aa"
    Secret(canary)
    arguments: Mapping[str, JsonValue] = {"key": canary, "text": "x" * 5_000}
    shop = Shop(then_done(calls(call("look", arguments), "gone")), a_tool())
    await shop.work()
    starts = [e for e in shop.bench.events if isinstance(e, ToolStarted)]
    ends = [e for e in shop.bench.events if isinstance(e, ToolFinished)]
    assert [(e.tool, e.round, e.index) for e in starts] == [("look", 0, 0), ("gone", 0, 1)]
    assert [(e.tool, e.end, e.source) for e in ends] == [
        ("look", "done", "run"),
        ("gone", "unfit", "none"),
    ]
    assert [e.characters for e in ends] == [len(text) for text in shop.results()]
    assert len(starts[0].arguments) == 200
    assert canary not in starts[0].arguments


# ---------------------------------------------------------------- the wish to stop


async def test_a_stop_that_was_asked_begins_no_round_and_is_no_fault() -> None:
    stop = Stop(clock=VirtualClock())

    def stopping(arguments: Arguments, context: ToolContext) -> str:
        stop.ask("SIGTERM")
        return "last"

    shop = Shop(
        [calls("halt", "look", text="so far")], a_tool("halt", stopping), a_tool(), stop=stop
    )
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, worked.detail, worked.error) == ("stopped", "SIGTERM", None)
    assert worked.text == "so far"
    assert shop.results() == ["last", "[stopped:SIGTERM]"]
    assert shop.model.calls == 1


async def test_a_stop_that_was_asked_in_the_last_call_of_a_round_asks_the_model_no_more() -> None:
    stop = Stop(clock=VirtualClock())

    async def stopping(arguments: Arguments, context: ToolContext) -> str:
        stop.ask()
        return "last"

    shop = Shop([calls("halt")], a_tool("halt", stopping), stop=stop)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, shop.model.calls, shop.results()) == ("stopped", 1, ["last"])
