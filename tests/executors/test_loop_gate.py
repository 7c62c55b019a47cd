"""What a gate is asked by a worker, what it hears, and what its word does."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from executors.errors import Halted, ValidationError
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.governor import Deed, Done
from executors.ids import NodeId
from executors.loop import Ended, Guards
from executors.tools.base import Arguments, Tool
from executors.tools.files import file_tools
from tests.executors.test_loop_resume import Counted, Remembered
from tests.executors.workers import Shop, a_tool, call, calls, raising, said, then_done

pytestmark = pytest.mark.anyio


class Gate:
    """Says what `decide` says, and remembers all it was asked and told."""

    def __init__(self, decide: Callable[[Deed], Settled] | None = None, hides: str = "") -> None:
        self._decide = decide
        self._hides = hides
        self.asked: list[Deed] = []
        self.heard: list[tuple[str, Done, str]] = []
        self.dropped: list[str] = []
        self.full = False

    def offers(self, tool: str) -> bool:
        return tool != self._hides

    async def check(self, deed: Deed) -> Settled:
        self.asked.append(deed)
        await anyio.lowlevel.checkpoint()
        return Allow(aid=f"a{len(self.asked)}") if self._decide is None else self._decide(deed)

    async def record(self, deed: Deed, done: Done, *, aid: str) -> None:
        self.heard.append((deed.tool, done, aid))
        if self.full:
            raise Halted(bound="budget.maxCostUsd", scope="run", limit="1 USD")

    def drop(self, aid: str) -> None:
        self.dropped.append(aid)


def the_tools(shop: Shop, request: int = 0) -> list[str]:
    return [tool.name for tool in shop.model.requests[request].tools]


async def test_a_gate_sees_what_is_to_be_done_by_whom_and_where() -> None:
    gate = Gate()
    tool = Tool(
        name="read", description="", parameters={"type": "object"}, execute=_gives, kind="read"
    )
    shop = Shop(
        then_done(calls(call("read", {"path": "/a"}))),
        tool,
        governor=gate,
        context={"user": "ann"},
    )
    await shop.work()
    assert gate.asked == [
        Deed(
            tool="read",
            kind="read",
            arguments={"path": "/a"},
            context={"user": "ann"},
            node=NodeId("root"),
            depth=0,
        )
    ]
    assert gate.heard == [("read", Done(text="given"), "a1")]
    assert gate.dropped == []


@pytest.mark.case("G-213")
async def test_a_gate_hears_that_a_tool_failed() -> None:
    gate = Gate()
    shop = Shop(then_done(calls("look")), a_tool("look", raising(ValueError("x"))), governor=gate)
    await shop.work()
    (name, done, aid) = gate.heard[0]
    assert (name, done.failed, aid) == ("look", True, "a1")


@pytest.mark.case("R-201")
async def test_a_deny_is_read_by_the_model_with_its_rule_and_nothing_runs() -> None:
    gate = Gate(lambda _: Deny(rule="tools.denylist", reason="not this one", aid="d"))
    tool = Counted("look")
    shop = Shop(then_done(calls("look")), tool.tool, governor=gate)
    await shop.work()
    assert shop.results() == ["Denied: not this one [tools.denylist]"]
    assert (tool.runs, gate.heard, shop.ends()) == (0, [], [("look", "denied")])


@pytest.mark.case("G-219")
async def test_denials_of_a_gate_in_a_row_end_the_worker() -> None:
    gate = Gate(lambda _: Deny(rule="limits.maxChildren", reason="1 of 1 were admitted"))
    shop = Shop([calls("look")] * 9, a_tool(), governor=gate, guards=Guards(denials=3))
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, len(gate.asked)) == ("denied", 3)
    told = "look: 1 of 1 were admitted [limits.maxChildren]; raise limits.max_children"
    assert worked.detail == told


@pytest.mark.case("G-210")
async def test_a_halt_never_reaches_the_model_and_what_was_admitted_before_it_is_dropped() -> None:
    def decide(deed: Deed) -> Settled:
        if deed.tool == "look":
            return Allow(aid="first")
        return Halt(rule="budget.maxCostUsd", reason="1.20 of 1 USD", hint="rlm resume")

    gate = Gate(decide)
    tools = [Counted(name) for name in ("look", "pay")]
    parallel = [a_tool(one.tool.name, one.tool.execute, parallel=True) for one in tools]
    shop = Shop([calls("look", "pay")], *parallel, governor=gate)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert isinstance(worked.error, Halted)
    assert (worked.error.bound, worked.error.hint) == ("budget.maxCostUsd", "rlm resume")
    assert "1.20 of 1 USD" in worked.error.what
    assert gate.dropped == ["first"]
    assert [one.runs for one in tools] == [0, 0]
    assert not any("1.20" in turn.content for turn in shop.transcript.turns)


async def test_what_a_call_drew_may_halt_the_run_and_its_result_is_kept() -> None:
    gate = Gate()
    gate.full = True
    shop = Shop([calls("look")], a_tool(), governor=gate)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, shop.results()) == ("halted", ["look"])


async def test_the_policy_is_asked_first_and_what_it_denies_is_no_question_for_the_gate() -> None:
    gate = Gate()
    shop = Shop(
        then_done(calls("look")),
        a_tool(),
        governor=gate,
        policy=lambda _: Deny(rule="p", reason="no"),
    )
    await shop.work()
    assert gate.asked == []


async def test_a_tool_that_a_gate_forbids_by_name_is_not_offered_and_still_denied_when_called() -> (
    None
):
    gate = Gate(lambda deed: Deny(rule="tools.denylist", reason=deed.tool), hides="pay")
    shop = Shop(then_done(calls("pay")), a_tool("look"), a_tool("pay"), governor=gate)
    await shop.work()
    assert the_tools(shop) == ["look"]
    assert shop.results() == ["Denied: pay [tools.denylist]"]


async def test_what_a_journal_holds_is_not_asked_again_and_what_replays_is_asked_once() -> None:
    journal = Remembered()
    for once, again in ((Counted("pay"), 1), (Counted("spawn", replays=True), 2)):
        gate = Gate()
        for _ in range(2):
            script = [calls(call(once.tool.name, {"n": 1})), said("done")]
            await Shop(script, once.tool, governor=gate, journal=journal).work()
        assert len(gate.asked) == 1
        assert once.runs == again


async def test_a_call_that_is_cancelled_is_dropped() -> None:
    gate = Gate()
    started = anyio.Event()

    async def hangs(*_: object) -> object:
        started.set()
        await anyio.sleep_forever()
        return None

    shop = Shop([calls("look")], a_tool("look", hangs), governor=gate)
    async with anyio.create_task_group() as group:
        group.start_soon(shop.work)
        await started.wait()
        group.cancel_scope.cancel()
    assert (gate.dropped, gate.heard) == (["a1"], [])


def test_a_tool_of_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="of kind 'rite'"):
        Tool(name="w", description="", parameters={}, execute=_gives, kind="rite")  # type: ignore[arg-type]


async def _gives(*_: object) -> str:
    return "given"


class Watchful(Gate):
    """Lets a search read nothing that is named like a secret."""

    def why_not_read(self, path: str) -> str | None:
        return "a secret" if "secret" in path else None


@pytest.mark.case("K15-10")
async def test_a_search_reads_no_file_that_the_gate_forbids_on_its_way(tmp_path: Path) -> None:
    for name in ("a.txt", "secret.txt", "deep/b.txt", "secrets/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("needle\n", encoding="utf-8")
    shop = Shop(
        then_done(calls(call("grep", {"pattern": "needle"}))),
        *file_tools(tmp_path),
        governor=Watchful(),
    )
    await shop.work()
    assert "a.txt" in shop.results()[0]
    assert "deep/b.txt" in shop.results()[0]
    assert "secret" not in shop.results()[0]


async def test_a_tool_that_cannot_say_what_it_would_do_is_denied() -> None:
    def broken(arguments: Arguments) -> Arguments:
        raise KeyError("path")

    tool = Tool(
        name="read", description="", parameters={}, execute=_gives, kind="read", judged=broken
    )
    gate = Gate()
    shop = Shop(then_done(calls("read")), tool, governor=gate)
    await shop.work()
    assert "cannot say what it would do" in shop.results()[0]
    assert gate.asked == []
