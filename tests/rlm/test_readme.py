"""The README says what happens."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# A block of Python and, right below it, what it prints.
EXAMPLES = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", README, re.DOTALL)
# A command that asks nobody, and what it prints.
DRY_RUNS = re.findall(
    r"```console\n\$ rlm (plan [^\n]*|[^\n]* --dry-run)\n(.*?)```", README, re.DOTALL
)


def run(*args: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=60, check=True, cwd=cwd
    )
    return done.stdout


def test_there_are_examples() -> None:
    assert EXAMPLES
    assert DRY_RUNS


@pytest.mark.parametrize(("command", "output"), DRY_RUNS)
def test_a_dry_run_says_what_the_readme_shows(command: str, output: str) -> None:
    said = run("-m", "rlm", *shlex.split(command), cwd=ROOT / "examples" / "data")
    assert said == output


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_an_example_prints_what_the_readme_shows(
    code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert run("-c", code) == output


def test_every_python_block_is_python_and_names_what_exists() -> None:
    import rlm

    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        compile(block.replace(", ...)", ")"), "README.md", "exec")
        for name in re.findall(r"\brlm\.(\w+)", block):
            assert hasattr(rlm, name), name


def test_every_option_that_is_named_exists() -> None:
    commands = (
        ["audit"], ["count"], ["gate", "log"], ["recurse"], ["resume"], ["show"], ["runs", "prune"],
    )  # fmt: skip
    text = "".join([run("-m", "rlm", *command, "--help") for command in commands])
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", README)) - {"--help"}
    missing = {option for option in named if option not in text}
    assert missing == set()


def test_the_exit_codes_are_those_of_the_code() -> None:
    from rlm.cli.exits import Exit

    table = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert table == {int(code) for code in Exit} - {Exit.PIPE_CLOSED}
