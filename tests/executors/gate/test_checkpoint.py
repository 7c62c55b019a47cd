"""Tools that need a person's word: only an explicit yes runs them."""

import threading
from contextlib import suppress

import anyio
import pytest

from executors.errors import Halted, ValidationError
from executors.gate.decisions import Allow, Deny
from executors.gate.people.checkpoint import Checkpoint

pytestmark = pytest.mark.anyio

TOOLS = ["send_email"]


def answering(said: object) -> Checkpoint:
    async def ask(question: str) -> object:
        return said

    return Checkpoint(TOOLS, ask=ask)


@pytest.mark.parametrize("said", ["yes", "Y", " approve\n", "APPROVED"])
async def test_an_explicit_yes_allows(said: str) -> None:
    assert isinstance(await answering(said).check("send_email", "{}"), Allow)


@pytest.mark.parametrize("said", ["ok", "sure", "", "denied", "yes!", None, True, 1, ["yes"]])
async def test_whatever_is_no_explicit_yes_denies(said: object) -> None:
    got = await answering(said).check("send_email", "{}", aid="a1")
    assert got == Deny(rule="checkpoint", reason="a person did not approve it", aid="a1")


async def test_a_tool_that_is_not_covered_asks_nobody() -> None:
    def never(question: str) -> str:
        raise AssertionError(question)

    assert isinstance(await Checkpoint(TOOLS, ask=never).check("search", "{}"), Allow)


@pytest.mark.parametrize(
    "error", [ValueError("gone"), Halted(bound="x", scope="y", limit="z"), SystemExit(3)]
)
async def test_asking_that_raises_denies(error: BaseException) -> None:
    def fails(question: str) -> str:
        raise error

    got = await Checkpoint(TOOLS, ask=fails).check("send_email", "{}")
    assert isinstance(got, Deny)
    assert "raised" in got.reason


async def test_silence_denies_and_a_late_yes_is_ignored() -> None:
    """An asker that swallows that its time is up may still say yes: nobody listens any more."""

    async def late(question: str) -> str:
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep_forever()
        return "yes"

    got = await Checkpoint(TOOLS, ask=late, timeout=0.02).check("send_email", "{}")
    assert isinstance(got, Deny)
    assert "0.02 s" in got.reason


async def test_a_plain_asker_that_hangs_is_left_behind() -> None:
    free = threading.Event()

    def hangs(question: str) -> str:
        free.wait(5)
        return "yes"

    got = await Checkpoint(TOOLS, ask=hangs, timeout=0.02).check("send_email", "{}")
    free.set()
    assert isinstance(got, Deny)


async def test_one_question_is_open_at_a_time() -> None:
    open_ = most = 0

    async def ask(question: str) -> str:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        await anyio.lowlevel.checkpoint()
        open_ -= 1
        return "yes"

    checkpoint = Checkpoint(TOOLS, ask=ask)
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(checkpoint.check, "send_email", str(number))
    assert most == 1


async def test_nobody_waits_for_an_absent_person_one_after_another() -> None:
    asked: list[str] = []
    got: list[Allow | Deny] = []

    async def absent(question: str) -> str:
        asked.append(question)
        await anyio.sleep_forever()
        return "yes"

    checkpoint = Checkpoint(TOOLS, ask=absent, timeout=0.05)

    async def check(shown: str) -> None:
        got.append(await checkpoint.check("send_email", shown))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(check, str(number))
    assert len(asked) == 1
    assert [type(one) for one in got] == [Deny] * 5


@pytest.mark.parametrize("tools", [[], "send_email", [""], [3]])
def test_what_names_no_tools_is_refused(tools: list[str]) -> None:
    with pytest.raises(ValidationError, match="names no tools"):
        Checkpoint(tools, ask=str)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), True])
def test_a_timeout_that_bounds_nothing_is_refused(timeout: float) -> None:
    with pytest.raises(ValidationError, match="bounds nothing"):
        Checkpoint(TOOLS, ask=str, timeout=timeout)
