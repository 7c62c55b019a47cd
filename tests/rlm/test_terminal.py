"""Single keys from a terminal."""

import os
import pty
import select
import termios
from collections.abc import Iterator

import pytest

from rlm.labelling.terminal import Keys, screen_size


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    far, near = pty.openpty()
    yield far, near
    os.close(far)
    os.close(near)


def typed(ends: tuple[int, int], raw: bytes, count: int) -> list[str]:
    far, near = ends
    with Keys(near) as keys:
        os.write(far, raw)
        return [keys.read() for _ in range(count)]


def test_a_key_is_a_whole_character_in_lower_case(ends: tuple[int, int]) -> None:
    assert typed(ends, "Yé日".encode(), 3) == ["y", "é", "日"]


def test_an_arrow_key_is_no_character_and_leaves_nothing_behind(ends: tuple[int, int]) -> None:
    far, near = ends
    with Keys(near) as keys:
        os.write(far, b"\x1b[A")
        assert keys.read() == ""
        os.write(far, b"n")
        assert keys.read() == "n"


def test_ctrl_d_quits_and_ctrl_c_interrupts(ends: tuple[int, int]) -> None:
    assert typed(ends, b"\x04", 1) == ["q"]
    with pytest.raises(KeyboardInterrupt):
        typed(ends, b"\x03", 1)


def test_the_terminal_is_as_it_was_however_it_ended(ends: tuple[int, int]) -> None:
    before = termios.tcgetattr(ends[1])
    with pytest.raises(KeyboardInterrupt):
        typed(ends, b"\x03", 1)
    assert termios.tcgetattr(ends[1]) == before


def test_what_was_typed_ahead_is_no_answer(ends: tuple[int, int]) -> None:
    os.write(ends[0], b"yyy\n")
    assert select.select([ends[1]], [], [], 5)[0]
    assert typed(ends, b"n", 1) == ["n"]


def test_a_key_is_not_echoed_into_the_page(ends: tuple[int, int]) -> None:
    assert typed(ends, b"y", 1) == ["y"]
    assert not select.select([ends[0]], [], [], 0.05)[0]


def test_a_terminal_that_goes_away_quits() -> None:
    far, near = pty.openpty()
    with Keys(near) as keys:
        os.close(far)
        assert keys.read() == "q"
    os.close(near)


def test_a_screen_has_a_size_everywhere() -> None:
    columns, rows = screen_size()
    assert columns >= 20
    assert rows >= 10
