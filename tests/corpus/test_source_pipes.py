"""What is no regular file: read once and whole, or refused with a reason."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from corpus.sources import open_source, piped
from executors.errors import SourceError
from tests.support.reading import pairs, stored

ROWS = "id,text\n" + "".join(f"r{i},text {i}\n" for i in range(5_000))


def _written(path: Path, content: str) -> Thread:
    thread = Thread(target=path.write_text, args=(content, "utf-8"))
    thread.start()
    return thread


def test_a_named_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    writer = _written(tmp_path / "rows.csv", ROWS)
    found = pairs(open_source(tmp_path / "rows.csv"))
    writer.join()
    assert len(found) == 5_000
    assert found[0] == ("r0", "text 0")


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd"])
def test_an_open_descriptor_is_read_once_and_whole(folder: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    try:
        source = open_source(f"{folder}/{reading}")
        assert pairs(source) == [("1", "one"), ("2", "two")]
        with pytest.raises(SourceError, match="can be read but once"):
            pairs(open_source(f"{folder}/{reading}"))
    finally:
        os.close(reading)


def test_a_descriptor_of_a_file_is_that_file(tmp_path: Path) -> None:
    with stored(tmp_path, "a.csv", ROWS).open("rb") as file:
        source = open_source(f"/dev/fd/{file.fileno()}", format="csv")
        assert len(pairs(source)) == len(pairs(source)) == 5_000


def test_a_pipe_that_nobody_writes_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piped, "_WRITER_SECONDS", 0.01)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match=r"(?s)nobody writes to the pipe.*waited 0\.01 s"):
        open_source(tmp_path / "pipe")


def test_a_device_is_refused_but_the_empty_one() -> None:
    with pytest.raises(SourceError, match="'/dev/zero' is a device"):
        open_source("/dev/zero")
    assert pairs(open_source(os.devnull)) == []


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_closed_standard_input_is_an_error_of_ours(path: str) -> None:
    program = f"""
import os, sys
from corpus.sources import open_source
from executors.errors import SourceError
os.close(0)
sys.stdin = None
try:
    open_source({path!r})
except SourceError as error:
    print(error.what)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "standard input is closed\n"
