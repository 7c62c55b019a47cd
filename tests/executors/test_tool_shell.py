"""A tool that runs programs: as lists of words, with what they may see named, and never for ever.

What each of these would let through is seen by a test: a shell that reads the words, an environment with
keys, folders of PATH that a model can write to, children that outlive their program, output without end,
a question to whoever sits at the terminal.
"""

import os
import sys
import time
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import cast

import anyio
import pytest

from executors.errors import ValidationError
from executors.gate.actions import plain
from executors.gate.config.bash import BashSection
from executors.gate.rules.bash import BashRule
from executors.ids import NodeId
from executors.replies import JsonValue
from executors.secrets import Secret
from executors.tools.base import Tool, ToolContext
from executors.tools.rooted import NotDone
from executors.tools.shell import ShellBounds, shell_tool

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(node=NodeId("root"), depth=0, round=0, index=0, call_id="c")


async def run(tool: Tool, *argv: str, **more: JsonValue) -> Mapping[str, object]:
    coming = tool.execute({"argv": list(argv), **more}, CONTEXT)
    return cast("Mapping[str, object]", await cast("Awaitable[object]", coming))


async def refused(tool: Tool, **arguments: JsonValue) -> str:
    with pytest.raises(NotDone) as caught:
        await cast("Awaitable[object]", tool.execute(arguments, CONTEXT))
    return str(caught.value)


async def test_a_program_says_how_it_ended(tmp_path: Path) -> None:
    tool = shell_tool(tmp_path)
    assert await run(tool, "echo", "a") == {"exit": 0, "stdout": "a\n", "stderr": ""}
    assert (await run(tool, "sh", "-c", "echo b >&2; exit 3")) == {
        "exit": 3,
        "stdout": "",
        "stderr": "b\n",
    }


@pytest.mark.case("K15-25")
async def test_no_shell_reads_the_words(tmp_path: Path) -> None:
    (tmp_path / "a b --flag").write_text("here", encoding="utf-8")
    tool = shell_tool(tmp_path)
    assert (await run(tool, "cat", "--", "a b --flag"))["stdout"] == "here"
    assert (await run(tool, "echo", "$HOME; *", "`x`"))["stdout"] == "$HOME; * `x`\n"


@pytest.mark.case("K15-19", "K15-20")
async def test_only_variables_that_are_named_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "k-canary-1")
    monkeypatch.setenv("OH_RENAMED", "k-canary-2")
    monkeypatch.setenv("TZ", "k-canary-3")
    Secret("k-canary-3")
    monkeypatch.setenv("SEEN", "yes")
    usual = (await run(shell_tool(tmp_path), "env"))["stdout"]
    assert "canary" not in str(usual)
    named = str((await run(shell_tool(tmp_path, environment=["SEEN"]), "/usr/bin/env"))["stdout"])
    assert named == "SEEN=yes\n"
    given = shell_tool(tmp_path, environment={"A": "b"})
    assert (await run(given, "/usr/bin/env"))["stdout"] == "A=b\n"


async def test_programs_of_the_folder_itself_are_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ls-of-mine").write_text("#!/bin/sh\necho mine\n", encoding="utf-8")
    (tmp_path / "ls-of-mine").chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    assert "cannot be started" in await refused(shell_tool(tmp_path), argv=["ls-of-mine"])
    assert (await run(shell_tool(tmp_path), "./ls-of-mine"))["stdout"] == "mine\n"


async def test_nothing_can_be_asked_of_a_person(tmp_path: Path) -> None:
    assert await run(shell_tool(tmp_path), "cat") == {"exit": 0, "stdout": "", "stderr": ""}


async def test_what_takes_too_long_is_killed_with_all_it_began(tmp_path: Path) -> None:
    tool = shell_tool(tmp_path, bounds=ShellBounds(seconds=0.4))
    began = time.monotonic()
    found = await run(tool, "sh", "-c", "echo begun; sleep 60 & echo $! > child; sleep 60")
    assert time.monotonic() - began < 5
    assert found["stdout"] == "begun\n"
    assert found["exit"] == -9
    assert "0.4 s" in str(found["killed"])
    await gone(int((tmp_path / "child").read_text(encoding="utf-8")))


async def test_what_is_left_behind_ends_with_its_program(tmp_path: Path) -> None:
    began = time.monotonic()
    found = await run(shell_tool(tmp_path), "sh", "-c", "sleep 60 & echo $! > child; echo done")
    assert time.monotonic() - began < 5
    assert (found["exit"], found["stdout"]) == (0, "done\n")
    await gone(int((tmp_path / "child").read_text(encoding="utf-8")))


@pytest.mark.skipif(sys.platform != "linux", reason="setsid is of Linux")
async def test_what_left_the_group_does_not_hold_up_anybody(tmp_path: Path) -> None:
    began = time.monotonic()
    found = await run(
        shell_tool(tmp_path),
        "sh",
        "-c",
        "setsid sh -c 'echo $$ > child; sleep 20' & sleep 0.2; echo x",
    )
    assert time.monotonic() - began < 5
    assert found["stdout"] == "x\n"
    os.kill(int((tmp_path / "child").read_text(encoding="utf-8")), 9)


async def test_a_program_ends_with_the_call_that_is_cancelled(tmp_path: Path) -> None:
    with anyio.move_on_after(0.4) as scope:
        await run(shell_tool(tmp_path), "sh", "-c", "echo $$ > child; sleep 60")
    assert scope.cancelled_caught
    await gone(int((tmp_path / "child").read_text(encoding="utf-8")))


async def gone(pid: int) -> None:
    """Wait until a process is there no more; a zombie that nobody reaps counts as gone."""
    with anyio.fail_after(3):
        while True:
            try:
                os.kill(pid, 0)
                state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            except (ProcessLookupError, FileNotFoundError):
                return
            if state.rpartition(")")[2].split()[0] == "Z":
                return
            await anyio.sleep(0.02)


async def test_output_without_end_is_bounded_while_it_is_read(tmp_path: Path) -> None:
    tool = shell_tool(tmp_path, bounds=ShellBounds(output=100))
    text = str(
        (await run(tool, "sh", "-c", "echo first; yes | head -c 20000000; echo last"))["stdout"]
    )
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert "20,000,0" not in text.replace("bytes", "")[:5]
    assert "bytes are left out" in text
    assert len(text) < 200


async def test_what_is_no_text_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    found = await run(shell_tool(tmp_path), "printf", r"a\377b")
    assert found["stdout"] == "a\ufffdb"


async def test_a_folder_below_may_be_chosen_and_none_besides(tmp_path: Path) -> None:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/away").symlink_to(tmp_path)
    tool = shell_tool(tmp_path / "in")
    found = await run(tool, "pwd", cwd="sub")
    assert found["stdout"] == f"{tmp_path.resolve()}/in/sub\n"
    for cwd in ("away", "..", "/etc", "nowhere", f"{tmp_path}"):
        await refused(tool, argv=["pwd"], cwd=cwd)


@pytest.mark.parametrize(
    "argv", [[], "ls", [""], [" "], ["ls", 7], ["ls", "a\0b"], ["x" * 200_000], None, [["ls"]]]
)
async def test_what_is_no_list_of_words_is_refused(tmp_path: Path, argv: JsonValue) -> None:
    await refused(shell_tool(tmp_path), argv=argv)


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = await refused(shell_tool(tmp_path), argv=["no-such-program"])
    assert said == "'no-such-program' cannot be started: No such file or directory"


def test_a_gate_judges_the_words(tmp_path: Path) -> None:
    """One chokepoint: what runs is what was judged, word by word."""
    tool = shell_tool(tmp_path)
    rule = BashRule(BashSection(allow=["git", "grep"]))
    assert tool.kind == "bash"
    for argv, allowed in (
        (["git", "log"], True),
        (["grep", "a|b", "x"], True),
        (["rm", "x"], False),
    ):
        action = plain({"type": tool.kind, "tool": tool.name, "args": {"argv": argv}})
        assert (rule.deny(action) is None) is allowed


@pytest.mark.parametrize("environment", ["PATH", [""], ["A=b"], [7], {"A=": "b"}, ["a\0"]])
def test_an_environment_that_names_nothing_is_refused(
    tmp_path: Path, environment: list[str]
) -> None:
    with pytest.raises(ValidationError, match="environment="):
        shell_tool(tmp_path, environment=environment)


@pytest.mark.parametrize("value", [0, -1, True, float("inf"), float("nan"), "9"])
def test_a_bound_that_bounds_nothing_is_refused(value: float) -> None:
    with pytest.raises(ValidationError, match="no bound"):
        ShellBounds(seconds=value)
