"""A person at a terminal: what they see, and which words of theirs allow."""

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from executors.gate.actions import plain
from executors.gate.harmless import harmless, harmless_json
from executors.gate.people.annotations import Annotation
from executors.gate.people.human import Approve, HumanEvent, Refuse, Reply, Terminate, TopUp
from executors.gate.people.standing import Standing
from executors.gate.people.terminal import terminal_human

pytestmark = pytest.mark.anyio


@pytest.fixture
def terminal() -> Iterator[tuple[int, Path]]:
    """The far end of a terminal, and the name of its near end."""
    far, near = os.openpty()
    yield far, Path(os.ttyname(near))
    os.close(far)
    os.close(near)


def event(kind: str = "ask", **more: object) -> HumanEvent:
    given = {
        "kind": kind,
        "action": plain({"type": "bash", "cmd": "ls"}),
        "shown": '{"cmd": "ls"}',
        "severity": "action",
        "rule": "bash.classify",
        "reason": "it deletes",
        "standing": Standing(usd=Decimal("0.5"), max_usd=Decimal(1), turns=3, max_turns=20),
        "aid": "0a",
        **more,
    }
    return HumanEvent(**given)  # type: ignore[arg-type]


async def answered(terminal: tuple[int, Path], typed: str, asked: HumanEvent) -> tuple[Reply, str]:
    far, device = terminal
    human = terminal_human(device=device)
    got: list[Reply] = []

    async def ask() -> None:
        got.append(await human(asked))

    shown = b""
    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while b"> " not in shown:
            await anyio.wait_readable(far)
            shown += os.read(far, 4_096)
        os.write(far, typed.encode())
    return got[0], shown.decode()


@pytest.mark.parametrize("typed", ["yes\n", "Y\n", " Approve \n", "APPROVED\n"])
async def test_explicit_words_allow(terminal: tuple[int, Path], typed: str) -> None:
    assert (await answered(terminal, typed, event()))[0] == Approve()


@pytest.mark.parametrize("typed", ["\n", "ok\n", "no\n", "yes please\n", "raise 5\n", "\x04"])
async def test_all_others_refuse(terminal: tuple[int, Path], typed: str) -> None:
    assert isinstance((await answered(terminal, typed, event()))[0], Refuse)


@pytest.mark.parametrize(
    ("typed", "reply"),
    [
        ("raise 2.50\n", TopUp(cap=Decimal("2.50"))),
        ("raise 2,000,000\n", TopUp(cap=Decimal(2_000_000))),
        ("raise much\n", TopUp(cap=None)),
        ("terminate\n", Terminate()),
        ("yes\n", Approve()),
    ],
)
async def test_at_a_bound_it_is_raised_or_the_run_ended(
    terminal: tuple[int, Path], typed: str, reply: Reply
) -> None:
    assert (await answered(terminal, typed, event("halt")))[0] == reply


async def test_the_question_shows_what_where_and_at_what_cost(terminal: tuple[int, Path]) -> None:
    noted = Annotation(verdict="suspect", where="mail\x1b[2J")
    asked = event(rule="x\u202ey", tier=3, annotations=(noted,))
    shown = (await answered(terminal, "no\n", asked))[1]
    for words in ('{"cmd": "ls"}', "it deletes", "tier 3", "0.5 of 1 USD", "3 of 20 turns"):
        assert words in shown
    assert r"x\u202ey" in shown
    assert r"mail\x1b[2J" in shown


async def test_what_was_typed_before_the_question_is_no_answer(terminal: tuple[int, Path]) -> None:
    """A late yes to one question must not allow the next action."""
    far, device = terminal
    os.write(far, b"yes\n")
    with anyio.move_on_after(0.05) as scope:
        await terminal_human(device=device)(event())
    assert scope.cancelled_caught
    shown = b""
    while b"No answer came in time" not in shown:  # or the test's own time is up
        shown += os.read(far, 4_096)


async def test_where_there_is_no_terminal_the_answer_is_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that comes through a pipe is data, and no person."""
    reading, writing = os.pipe()
    os.write(writing, b"yes\n")
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        got = await terminal_human(device=tmp_path / "none")(event())
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, reading, writing):
            os.close(descriptor)
    assert got == Refuse(reason="there is no terminal to ask on")


def test_nothing_that_is_shown_moves_a_cursor_or_reorders_text() -> None:
    assert harmless("a\x1b[31m\r\n\u202eb\u2028\ud800é漢") == r"a\x1b[31m\r\n\u202eb\u2028\ud800é漢"
    assert harmless_json({"cmd": "x\u202e"}) == r'{"cmd": "x\u202e"}'
    assert len(harmless("x" * 9_000)) < 2_100
