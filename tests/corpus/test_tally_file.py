"""A result on disk: it takes the place of the one before as a whole."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import numpy as np
import pytest

from corpus.ledger import Ledger
from corpus.records import Part
from corpus.results import Ranking, Tally, tally
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from corpus.tally_file import load_ranking, load_tally, save_ranking, save_tally
from corpus.verdicts import Matched, NotMatched, Quote, Unsure, Verdict
from executors.errors import RunDirError

RECORDS = [("a", "one"), ("b", "two"), ("c", "three")]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with anyio.run(build_spool, open_source(RECORDS), tmp_path / "spool") as spool:
        yield spool


def counted(spool: Spool, verdict: Verdict) -> Tally:
    ledger = Ledger(len(spool), passes=1)
    for ordinal, (id_, text) in enumerate(RECORDS):
        ledger.add(Part(ordinal=ordinal, id=id_, text=text), 0, verdict)
    return tally(spool, ledger, votes="any", judge="a judge", notes=("noted",))


def test_a_tally_comes_back_as_it_was(spool: Spool, tmp_path: Path) -> None:
    quote = Quote(text="o", start=0, end=1)
    result = counted(spool, Matched(probability=0.5, quote=quote))
    save_tally(result, tmp_path / "verdicts")
    found = load_tally(tmp_path / "verdicts", spool)
    assert list(found.rows()) == list(result.rows())
    assert (found.states, found.judge, found.notes) == (result.states, "a judge", ("noted",))


def test_a_ranking_comes_back_as_it_was(spool: Spool, tmp_path: Path) -> None:
    scores = np.array([0.1, np.nan, 0.3], dtype=np.float32)
    result = Ranking(records=3, judge="a judge", notes=(), spool=spool, scores=scores)
    save_ranking(result, tmp_path / "verdicts")
    assert list(load_ranking(tmp_path / "verdicts", spool).rows()) == list(result.rows())
    with pytest.raises(FileNotFoundError, match="tally"):
        load_tally(tmp_path / "verdicts", spool)


def test_nothing_of_the_result_before_is_left(spool: Spool, tmp_path: Path) -> None:
    save_tally(counted(spool, Unsure(reason="dim", probability=0.5)), tmp_path / "verdicts")
    save_tally(counted(spool, NotMatched()), tmp_path / "verdicts")
    found = load_tally(tmp_path / "verdicts", spool)
    assert {row.reason for row in found.rows()} == {""}
    assert {row.probability for row in found.rows()} == {None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spool", "verdicts"]


def test_who_reads_the_one_before_reads_it_to_its_end(spool: Spool, tmp_path: Path) -> None:
    save_tally(counted(spool, Unsure(reason="dim")), tmp_path / "verdicts")
    opened = load_tally(tmp_path / "verdicts", spool)
    save_tally(counted(spool, Matched()), tmp_path / "verdicts")
    assert [row.reason for row in opened.rows()] == ["dim"] * 3


@pytest.mark.parametrize("died", ["before the swap", "between its halves", "after it"])
def test_a_process_that_dies_leaves_one_of_the_two(
    spool: Spool, tmp_path: Path, died: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = counted(spool, NotMatched()), counted(spool, Matched())
    save_tally(old, tmp_path / "verdicts")
    renames = 0
    rename = Path.rename

    def dying(path: Path, target: Path) -> Path:
        nonlocal renames
        renames += 1
        if renames > ("before the swap", "between its halves", "after it").index(died):
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dying)
        if died == "after it":
            save_tally(new, tmp_path / "verdicts")
        else:
            with pytest.raises(KeyboardInterrupt):
                save_tally(new, tmp_path / "verdicts")
    found = load_tally(tmp_path / "verdicts", spool)
    assert found.count == (0 if died == "before the swap" else 3)
    save_tally(old, tmp_path / "verdicts")
    assert load_tally(tmp_path / "verdicts", spool).count == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spool", "verdicts"]


def test_a_result_about_other_records_is_refused(spool: Spool, tmp_path: Path) -> None:
    save_tally(counted(spool, Matched()), tmp_path / "verdicts")
    with (
        anyio.run(build_spool, open_source(RECORDS[::-1]), tmp_path / "other") as other,
        pytest.raises(RunDirError, match="about other records"),
    ):
        load_tally(tmp_path / "verdicts", other)
