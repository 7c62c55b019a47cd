"""Packed sources: what swells beyond all texts is refused, before it fills a disk or the memory."""

import gzip
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from corpus.sources import open_source
from corpus.sources.origin import FileOrigin
from executors.errors import SourceError
from rlm.cli.app import main

BOMB = b"text,note\n" + bytes(120_000_000)


def read(path: Path) -> None:
    records = open_source(path, text="text").records()
    assert isinstance(records, Iterator)
    for _ in records:
        pass


PACKERS = pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)]
)


@PACKERS
def test_a_bomb_is_refused_with_its_figures_and_without_its_memory(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(pack(BOMB))
    tracemalloc.start()
    with pytest.raises(SourceError, match="unpacks to far more than texts do") as caught:
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "unpack it yourself first" in str(caught.value)
    assert peak < 350_000_000


def test_a_bomb_of_bombs_is_refused_at_its_first_members(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)) * 1_000)
    with pytest.raises(SourceError, match="unpacks to far more than texts do"):
        read(path)


def test_a_bomb_leaves_no_run_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = tmp_path / "t.csv.zst", tmp_path / "run"
    path.write_bytes(zstandard.compress(BOMB))
    told = ["--text", "text", "--terms", "refund", "--run", str(run)]
    assert main(["count", str(path), "a refund?", *told]) == 2
    assert "unpack it yourself first" in capsys.readouterr().err
    assert not run.exists()


@PACKERS
def test_a_large_text_that_packs_well_is_read(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"t.jsonl{suffix}"
    words = random.Random(1).randbytes(1_500).hex().encode()
    data = b"".join(b"%d%s\n" % (n, words) for n in range(24_000))
    path.write_bytes(pack(data))
    assert len(data) > 64 * 1024 * 1024 > 50 * path.stat().st_size
    with FileOrigin(path).open() as stream:
        assert stream.read() == data
