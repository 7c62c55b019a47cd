"""The command line: what is said where, and which code it ends with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from executors.errors import AuthError, Halted, InternalError, RlmError, ValidationError
from executors.secrets import Secret
from rlm._version import __version__
from rlm.cli import app, main
from rlm.cli.exits import Exit, exit_of
from rlm.cli.options import choose, split_list, typed_question


@pytest.fixture(autouse=True)
def own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """`main` installs its own; the test runner's comes back."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("NO_COLOR", "1")


def run(*args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the real program."""
    return subprocess.run(
        [sys.executable, "-m", "rlm", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
        timeout=60,
    )


def test_the_program_says_its_version_and_its_commands() -> None:
    assert run("--version").stdout == f"rlm {__version__}\n"
    shown = run("--help")
    assert shown.returncode == 0
    for command in ("count", "recurse", "plan", "show", "doctor", "models"):
        assert f"\n  {command} " in shown.stdout
    assert "\x1b" not in shown.stdout


HEAVY = ("anyio", "asyncio", "httpx", "networkx", "numpy", "onnxruntime", "rich", "scipy")


@pytest.mark.parametrize(
    "args",
    [
        "--help",
        "count --help",
        "count no-file is-it",
        "show no-run",
        "recurse --help",
        "recurse x --id a",
        "recurse x --contract=",
        "plan --help",
    ],
)
def test_nothing_heavy_loads_before_it_is_needed(args: str) -> None:
    code = (
        f"import sys; from rlm.cli import main; main({args.split()!r}); "
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded []\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValidationError("x"), Exit.USAGE),
        (AuthError("x"), Exit.INCOMPLETE),
        (Halted(bound="usd", scope="run", limit="1"), Exit.INCOMPLETE),
        (InternalError("x"), Exit.OUR_FAULT),
    ],
)
@pytest.mark.case("D14")
def test_the_exit_code_says_whose_fault_it_was(error: RlmError, code: Exit) -> None:
    assert exit_of(error) is code


@pytest.mark.case("D14")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["count"],
            snapshot("""\
rlm: Missing argument 'source'.
  see: rlm count --help
"""),
        ),
        (
            ["count", "x", "y", "--no-such"],
            snapshot("""\
rlm: No such option: --no-such (Possible options: --no-cache)
  see: rlm count --help
"""),
        ),
        (
            ["count", "x", "y", "--passes", "many"],
            snapshot("""\
rlm: Invalid value for '--passes': Input should be a valid integer, unable to parse string as an integer
  see: rlm count --help
"""),
        ),
        (
            ["fly\x1b[2J"],
            snapshot("""\
rlm: No such command 'fly\\x1b[2J'.
  see: rlm --help
"""),
        ),
    ],
)
def test_wrong_use_is_one_message_and_code_2(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == said


def test_an_error_of_ours_is_its_three_lines_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ValidationError("the value 'x\x1b[31m' is wrong", where="[/INST]", hint="choose y")

    def fails(args: list[str]) -> int:
        raise error

    monkeypatch.setattr(app, "_run", fails)
    assert main([]) == 2
    assert capsys.readouterr() == (
        "",
        "rlm: the value 'x\\x1b[31m' is wrong\n  [/INST]\n  choose y\n",
    )


@pytest.mark.case("K13-19")
def test_what_nobody_expected_is_said_without_locals_or_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = Secret("canary-key-123456")
    main(["--version"])
    capsys.readouterr()
    try:
        raise ExceptionGroup("one", [RuntimeError(f"server said {key.reveal()}\x1b[2J")])
    except ExceptionGroup as error:
        sys.excepthook(type(error), error, error.__traceback__)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rlm: failed unexpectedly: RuntimeError: server said [secret]\\x1b[2J\n")
    assert "Traceback" not in err
    assert "canary" not in err


@pytest.mark.case("K13-19")
def test_only_debug_shows_a_traceback(tmp_path: Path) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text(
        "import sys\nfrom rlm.cli import app, main\n"
        "def fails(args):\n    key = 'canary'\n    raise KeyError('x')\n"
        "app._run = fails\nsys.exit(main())\n",
        encoding="utf-8",
    )

    def crashed(*args: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, str(crash), *args]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    short, long = crashed("count"), crashed("count", "--debug")
    assert (short.returncode, long.returncode) == (1, 1)
    assert "Traceback" not in short.stderr
    assert "please report it" in short.stderr
    assert "Traceback" in long.stderr
    assert "canary" not in long.stderr.replace("key = 'canary'", "")


@pytest.mark.case("K15-26")
@pytest.mark.parametrize("text", ["is {{ input.missing }} in it?", "{{x}}", "a {{ rows[0] }}"])
def test_a_template_that_was_never_filled_in_fails_before_anything_is_read(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["count", "no-such-file", text]) == 2
    assert "unfilled placeholder" in capsys.readouterr().err
    assert typed_question(text, one_of=None, verbatim=True).text == text


def test_braces_that_are_no_placeholder_are_asked_as_they_stand() -> None:
    for text in ("does it hold {}?", "is {{ 1 + 1 }} there?", "{ a } and {{}}"):
        assert typed_question(text, one_of=None, verbatim=False).text == text


def test_lists_split_at_commas_and_keep_quoted_ones() -> None:
    assert split_list('a, "b, c",,d', option="--one-of") == ("a", "b, c", "d")
    assert split_list(None, option="--one-of") == ()
    with pytest.raises(ValidationError, match=r"--one-of='\"a' is no list"):
        split_list('"a', option="--one-of")


def test_a_choice_that_is_none_is_quoted_with_the_choices() -> None:
    assert choose("b", ("a", "b"), option="--x") == "b"
    with pytest.raises(ValidationError, match=r"(?s)--x='c'.*one of a, b"):
        choose("c", ("a", "b"), option="--x")


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m rlm models | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip() in {"0", "141"}
    assert done.stderr == ""


def test_no_text_fails_for_the_encoding_of_a_stream(tmp_path: Path) -> None:
    done = run("count", str(tmp_path / "naïve-日本\u202e"), "q", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "na\\xefve-\\u65e5\\u672c\\u202e" in done.stderr


def test_models_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert "openai+http://localhost:8000/v1:NAME" in shown
    assert "encoder:minilm" in shown
    assert main(["models", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["choices"]
    assert {choice["kind"] for choice in found} == {"model", "encoder", "weights"}
