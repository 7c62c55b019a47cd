"""What a worker's tools did is written down, so that no effect is had twice."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from executors.errors import DiskFault, ReplayMiss, ToolBroken
from executors.events import ToolFinished
from executors.ids import ContentKey
from executors.journal.journal import RunJournal
from executors.journal.records import NoJournal, ToolBegun, ToolDone
from executors.loop import Ended, Finished, Worked
from executors.messages import ModelReply
from executors.tools.base import Arguments, Tool, ToolContext
from tests.executors.journals import opened
from tests.executors.workers import Shop, a_tool, call, calls, raising, said

pytestmark = pytest.mark.anyio


class Remembered(NoJournal):
    """A journal of tools, in memory."""

    def __init__(self) -> None:
        self.known: dict[ContentKey, ToolDone | ToolBegun] = {}
        self.names: list[str] = []

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
        return self.known.get(key)

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        self.names.append(name)
        self.known[key] = ToolBegun()

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        self.known[key] = ToolDone(result=result, failed=failed)


class Counted:
    """A tool that counts how often it ran."""

    def __init__(
        self, name: str = "pay", *, idempotent: bool = False, replays: bool = False
    ) -> None:
        self.runs = 0

        def execute(arguments: Arguments, context: ToolContext) -> str:
            self.runs += 1
            return f"run {self.runs}"

        self.tool = a_tool(name, execute, idempotent=idempotent, replays=replays)


SCRIPT: Sequence[ModelReply] = [calls(call("pay", {"n": 1})), said("done")]


async def session(journal: NoJournal, *tools: Tool, ordinal: int = 0) -> Shop:
    """Let one worker do the script; a model of its own each time."""
    shop = Shop(list(SCRIPT), *tools, journal=journal, ordinal=ordinal)
    assert isinstance(await shop.work(), Finished)
    return shop


def sources(shop: Shop) -> list[str]:
    return [event.source for event in shop.bench.events if isinstance(event, ToolFinished)]


async def test_a_tool_that_is_done_is_not_run_again_and_its_result_is_read_anew() -> None:
    journal, pay = Remembered(), Counted()
    first = await session(journal, pay.tool)
    second = await session(journal, pay.tool)
    assert (pay.runs, journal.names) == (1, ["pay"])
    assert second.transcript.turns == first.transcript.turns
    assert (sources(first), sources(second)) == (["run"], ["journal"])


async def test_a_failure_is_a_result_and_is_not_tried_again() -> None:
    journal = Remembered()
    first = await session(journal, a_tool("pay", raising(OSError("x"))))
    second = await session(journal, a_tool("pay", raising(OSError("y"))))
    assert second.results() == first.results() == ["Error: the tool 'pay' raised OSError: x"]


@pytest.mark.case("K13-13")
async def test_a_tool_that_was_cut_off_is_told_as_such_and_not_run_again() -> None:
    journal, pay = Remembered(), Counted()
    await session(journal, pay.tool)
    (key,) = journal.known
    journal.known[key] = ToolBegun()
    shop = await session(journal, pay.tool)
    assert pay.runs == 1
    assert shop.results()[0].startswith("Interrupted: the tool 'pay' was running")
    assert shop.ends() == [("pay", "interrupted")]
    assert journal.known[key] == ToolBegun()


@pytest.mark.case("K13-13")
async def test_a_tool_amid_which_the_run_was_cancelled_is_not_run_again() -> None:
    journal, began = Remembered(), anyio.Event()

    async def pays(arguments: Arguments, context: ToolContext) -> None:
        began.set()
        await anyio.sleep_forever()

    shop = Shop(list(SCRIPT), a_tool("pay", pays), journal=journal)
    async with anyio.create_task_group() as group:
        group.start_soon(shop.work)
        await began.wait()
        group.cancel_scope.cancel()
    pay = Counted()
    again = await session(journal, pay.tool)
    assert (pay.runs, again.ends()) == (0, [("pay", "interrupted")])


async def test_an_idempotent_tool_that_was_cut_off_is_run_again() -> None:
    journal, pay = Remembered(), Counted(idempotent=True)
    await session(journal, pay.tool)
    (key,) = journal.known
    journal.known[key] = ToolBegun()
    shop = await session(journal, pay.tool)
    assert (pay.runs, shop.results()) == (2, ["run 2"])
    assert journal.known[key] == ToolDone(result="run 2", failed=False)


async def test_a_tool_that_replays_is_run_in_each_session_and_never_written_down() -> None:
    journal, spawn = Remembered(), Counted(replays=True)
    await session(journal, spawn.tool)
    await session(journal, spawn.tool)
    assert (spawn.runs, journal.known) == (2, {})


async def test_a_tool_that_replays_is_never_looked_up() -> None:
    """A replay, which holds no such thing, would halt."""

    class Replay(Remembered):
        def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun | None:
            raise ReplayMiss(key=key, where="here")

    assert (await session(Replay(), Counted(replays=True).tool)).results() == ["run 1"]
    worked = await Shop(list(SCRIPT), Counted().tool, journal=Replay()).work()
    assert isinstance(worked, Ended)
    assert isinstance(worked.error, ReplayMiss)


@pytest.mark.case("K10-11")
async def test_a_tool_that_is_gone_is_not_filed_as_done_since_it_may_come_back() -> None:
    journal = Remembered()
    gone = a_tool("pay", raising(ToolBroken("gone")), idempotent=True)
    assert isinstance(await Shop(list(SCRIPT), gone, journal=journal).work(), Ended)
    assert list(journal.known.values()) == [ToolBegun()]
    mended = Counted(idempotent=True)
    assert (await session(journal, mended.tool)).results() == ["run 1"]


async def test_two_workers_at_one_node_are_told_apart_by_their_ordinals() -> None:
    journal, pay = Remembered(), Counted()
    await session(journal, pay.tool)
    await session(journal, pay.tool, ordinal=1)
    assert pay.runs == 2


async def test_the_same_call_twice_in_a_round_is_two_calls() -> None:
    journal, pay = Remembered(), Counted()
    shop = Shop([calls("pay", "pay"), said()], pay.tool, journal=journal)
    await shop.work()
    assert (pay.runs, len(journal.known)) == (2, 2)


async def test_what_was_denied_or_did_not_fit_is_no_run_of_a_tool() -> None:
    journal = Remembered()
    shop = Shop([calls("gone", call("pay", "5")), said()], a_tool("pay"), journal=journal)
    await shop.work()
    assert journal.known == {}


async def test_a_disk_that_is_full_halts_and_the_result_is_not_acknowledged() -> None:
    class Full(Remembered):
        async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
            raise DiskFault("no space left")

    shop = Shop([calls("pay")], a_tool("pay"), journal=Full())
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, worked.detail) == ("halted", "disk")
    assert shop.results() == ["[halted:disk]"]


async def test_it_begins_on_disk_before_it_runs() -> None:
    journal = Remembered()
    seen: list[object] = []
    tool = a_tool("pay", lambda _, __: seen.extend(journal.known.values()))
    await session(journal, tool)
    assert seen == [ToolBegun()]


# ---------------------------------------------------------------- with the journal of a run


async def worked_in(directory: Path, pay: Counted) -> tuple[Worked, Shop]:
    async with opened(directory) as journal:
        shop = Shop(list(SCRIPT), pay.tool)
        shop.bench.calls.journal = journal
        return await shop.work(), shop


async def test_a_resumed_run_asks_no_model_and_runs_no_tool(tmp_path: Path) -> None:
    pay = Counted()
    first, _ = await worked_in(tmp_path, pay)
    second, shop = await worked_in(tmp_path, pay)
    assert second.log.messages == first.log.messages
    assert second.log.usage == first.log.usage
    assert (pay.runs, shop.model.calls) == (1, 0)


KILLED = """
import os, sys, anyio
from pathlib import Path
from executors.journal.journal import RunJournal
from tests.executors.workers import Shop, a_tool, calls, said

async def main():
    ran = Path(sys.argv[1]) / "ran"
    def pay(arguments, context):
        ran.write_text(ran.read_text(encoding="utf-8") + "x" if ran.exists() else "x", encoding="utf-8")
        return "paid"
    def dies(arguments, context):
        pay(arguments, context)
        os.kill(os.getpid(), 9)
    journal = RunJournal.open(Path(sys.argv[1]), index=True)
    shop = Shop([calls("pay"), calls("dies"), said()], a_tool("pay", pay), a_tool("dies", dies))
    shop.bench.calls.journal = journal
    await shop.work()

anyio.run(main)
"""


async def test_after_kill_9_no_tool_has_its_effect_twice(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    died = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(root)},
            check=False,
            timeout=60,
        )
    )
    assert died.returncode == -9
    assert (tmp_path / "ran").read_text(encoding="utf-8") == "xx"
    again: list[str] = []
    journal = RunJournal.open(tmp_path, index=True)
    try:
        shop = Shop(
            [said("done")],  # both answers are filed
            a_tool("pay", lambda _, __: again.append("pay")),
            a_tool("dies", lambda _, __: again.append("dies")),
        )
        shop.bench.calls.journal = journal
        assert isinstance(await shop.work(), Finished)
    finally:
        await journal.aclose()
    assert again == []
    assert shop.results()[0] == "paid"
    assert shop.results()[1].startswith("Interrupted: the tool 'dies'")
