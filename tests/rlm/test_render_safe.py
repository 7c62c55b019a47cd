"""Text from outside never steers a terminal, and none of it is lost."""

import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.render.lines import Piece, as_text, is_fancy, line, write_lines
from rlm.render.safe import cells, plain, plain_lines

ANY_TEXT = st.text(st.characters(exclude_categories=()))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shows_only_ink(text: str) -> bool:
    return not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve café 日本語 👍🏽", "naïve café 日本語 👍🏽"),
        ("a\x1b[2Jb\x07", "a\\x1b[2Jb\\x07"),
        ("one\ntwo\r\n\tthree", "one\\ntwo\\r\\n\\tthree"),
        ("\x9b31m csi in one byte", "\\x9b31m csi in one byte"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("half \ud83d of a pair", "half \\ud83d of a pair"),
        ("tag \U000e0041 and selector \U000e0100", "tag \\U000e0041 and selector \\U000e0100"),
        ("filler \u3164|\u115f|\uffa0", "filler \\u3164|\\u115f|\\uffa0"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("nul \x00", "nul \\x00"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.case("K15-22")
def test_a_file_name_cannot_turn_the_reading_direction_around() -> None:
    assert plain("invoice\u202efdp.exe") == "invoice\\u202efdp.exe"


@pytest.mark.case("K13-7", "K13-8", "K13-10")
@pytest.mark.parametrize(
    "text", ["see [/INST]", "item [red]x and [bold]", "[link=x]y[/]", ":smile:"]
)
def test_markup_from_outside_is_shown_whole_on_a_terminal_too(text: str) -> None:
    terminal = Terminal()
    write_lines([line(Piece(plain(text), "strong"), " ", text)], terminal, fancy=True)
    assert terminal.getvalue().count(text) == 2


@given(ANY_TEXT)
def test_no_text_at_all_comes_out_with_a_control_or_format_character(text: str) -> None:
    assert shows_only_ink(plain(text))
    assert all(map(shows_only_ink, plain_lines(text, 20, 5)))


@given(ANY_TEXT, st.integers(1, 40))
def test_a_clipped_text_keeps_to_its_width(text: str, width: int) -> None:
    shown = plain(text, width)
    assert cells(shown) <= width
    assert len(shown) <= width * 4 + 1


def test_a_wide_character_takes_two_cells_and_a_combining_one_none() -> None:
    assert plain("日本語です", 6) == "日本…"
    assert cells("e\u0301") == 1
    assert len(plain("a" + "\u0301" * 10_000, 5)) < 30


def test_lines_of_a_record_break_at_spaces_and_lose_nothing() -> None:
    assert plain_lines("to be or not\r\n\tto be", 9, 9) == ["to be or", "not", "    to be"]
    assert plain_lines("", 10, 3) == [""]


def test_a_record_that_is_cut_says_so() -> None:
    rows = plain_lines("word " * 1_000, 10, 3)
    assert rows == ["word word", "word word", "… (cut here; 5,000 characters in all)"]


@pytest.mark.case("K13-5")
@pytest.mark.parametrize(
    "env", [{}, {"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": ""}]
)
def test_a_dumb_terminal_or_no_color_gets_no_escape_byte(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    write_lines([line(Piece("good", "good"), " ", Piece("bold", "strong"))], terminal)
    assert terminal.getvalue() == "good bold\n"


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"TERM": "xterm"}
    assert is_fancy(Terminal(), env)
    assert not is_fancy(io.StringIO(), env)
    terminal = Terminal()
    write_lines([line(Piece("x" * 500, "good"))], terminal, fancy=True)
    assert terminal.getvalue().startswith("\x1b[32m")
    assert terminal.getvalue().count("\n") == 1


def test_plain_lines_of_text_carry_no_trailing_blanks() -> None:
    assert as_text([line("a ", Piece(" ", "dim")), line("b")]) == "a\nb\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")
def test_plain_text_does_not_load_the_colour_library() -> None:
    import subprocess

    code = "import sys; from rlm.render.lines import *; write_lines([line('x')], sys.stdout); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "x\nFalse\n"
