"""The README's recipe for a governed run, run as it is written: files, commands and output."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm.testing import FakeServer, judge_server

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Governed runs\n")[2].partition("\n## ")[0]
FILES = re.findall(r"```yaml\n# (\S+)\n(.*?)```", SECTION, re.DOTALL)
COMMANDS = re.findall(r"```console\n\$ rlm ([^\n]*)\n(.*?)```", SECTION, re.DOTALL)
MODEL = "openai:gpt-4.1-mini"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(judge_server(lambda text: "click" in text.lower())) as serving:
        yield serving


def plain(text: str) -> str:
    """Leave out what differs from one run to the next: times and what was just in flight."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", "SPAN", text)
    text = re.sub(r", [\d.]+ USD set aside for what is in flight", "", text)
    return re.sub(r"\d[\d,.]*", "N", text)


def test_the_recipe_works_as_it_is_written(server: FakeServer, tmp_path: Path) -> None:
    """Only the model's place is another one, and numbers that differ between any two runs."""
    (tmp_path / "spamassassin.jsonl.gz").symlink_to(ROOT / "examples/data/spamassassin.jsonl.gz")
    assert FILES
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(COMMANDS) >= 3
    there = f"openai+{server.base_url}:gpt-4.1-mini"
    for command, wanted in COMMANDS:
        words = [there if word == MODEL else word for word in shlex.split(command)]
        done = subprocess.run(
            [sys.executable, "-m", "rlm", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode in (0, 4), done.stderr
        said = done.stdout.replace(f" at {server.base_url.removesuffix('/v1')}", "")
        lines = [plain(line) for line in said.splitlines()]
        for line in wanted.splitlines():
            assert line.strip() == "..." or plain(line) in lines, (command, line, said)
