"""Results as files: whole or not at all, no formula in a cell, reloaded equal."""

import csv
import json
import os
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.ledger import Ledger
from corpus.records import Part
from corpus.results import Ranking, Tally, ranked_by_probability, tally
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from corpus.verdicts import Matched, NotMatched, Quote, Unresolved, Unsure, Verdict
from executors.errors import MissingExtra, OutputError, UsageError, ValidationError
from rlm import outputs
from rlm.outputs import check_target, read_csv, write_result
from rlm.render.spreadsheet import CellGuard, restored

NASTY = {
    "=1+1": "a formula",
    "-5": "a negative id",
    "\uff1dcmd|' /C calc'!A0": "a full-width formula",
    "'=quoted": "an apostrophe before it already",
    "@sum": "an at sign",
    "nul\x00inside": "NUL",
    "line\u2028separator": "U+2028",
    'quote " and, comma': "CSV's own characters",
    "cr\ronly": "a lone carriage return",
    "日本語": "no ASCII",
    "[red]\x1b[31m": "markup and a control sequence",
    "empty": "  ",
}
VERDICTS: list[Verdict] = [
    Matched(probability=0.25, quote=Quote(text="=HYPERLINK(1)", start=2, end=9)),
    NotMatched(probability=0.125),
    Unsure(reason="+could not tell"),
    Unresolved(reason="the call failed: rate-limited"),
]


def nothing_installed(name: str) -> None:
    """Find no package at all."""


def tally_of(records: dict[str, str], folder: Path) -> Tally:
    spool: Spool = anyio.run(build_spool, open_source(records), folder / "spool")
    ledger = Ledger(len(spool), passes=1)
    for ordinal, record in enumerate(spool):
        if not spool.is_empty[ordinal]:
            part = Part(ordinal=ordinal, id=record.id, text=record.text)
            ledger.add(part, 0, VERDICTS[ordinal % 4])
    return tally(spool, ledger, votes="any", judge="a test")


@pytest.fixture
def nasty(tmp_path: Path) -> Tally:
    return tally_of(NASTY, tmp_path)


def test_a_csv_reloads_equal_and_runs_no_formula(nasty: Tally, tmp_path: Path) -> None:
    written = write_result(nasty, check_target(tmp_path / "out.csv"))
    rows = list(read_csv(written.path))
    assert [row["id"] for row in rows] == [id_.replace("\0", "\u2400") for id_ in NASTY]
    assert [row["state"] for row in rows] == [row.state for row in nasty.rows()]
    assert rows[0]["quote"] == "=HYPERLINK(1)"
    assert rows[0]["probability"] == "0.25"
    assert rows[1]["quote"] is None
    with written.path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t", "\r", "\uff1d"}]
    assert written.rows == len(NASTY)
    assert written.formulas == 11
    assert written.replaced == 1
    assert len(written.notes) == 2


@pytest.mark.case("K7-7", "K5-7")
def test_jsonl_reloads_equal_one_record_a_line(nasty: Tally, tmp_path: Path) -> None:
    written = write_result(nasty, check_target(tmp_path / "out.jsonl"))
    text = written.path.read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(NASTY)
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    assert [row["id"] for row in rows] == list(NASTY)
    assert rows[0]["quote_start"] == 2
    assert rows[-1] == {
        "ordinal": 11, "id": "empty", "state": "empty", "label": None, "probability": None,
        "reason": "no text", "quote": None, "quote_start": None, "quote_end": None,
        "where": rows[-1]["where"],
    }  # fmt: skip
    assert written.notes == ()


def test_parquet_reloads_equal_with_types(nasty: Tally, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    written = write_result(nasty, check_target(tmp_path / "out.parquet"))
    table = parquet.read_table(written.path)
    assert table.column("id").to_pylist() == list(NASTY)
    assert str(table.schema.field("probability").type) == "double"
    assert str(table.schema.field("ordinal").type) == "int64"
    assert written.rows == len(NASTY)


def test_a_ranking_is_written_best_first(nasty: Tally, tmp_path: Path) -> None:
    scores = np.linspace(0, 1, len(NASTY), dtype=np.float32)
    scores[-1] = np.nan
    ranking = Ranking(
        records=len(NASTY), judge="a test", notes=(), spool=nasty.spool, scores=scores
    )
    written = write_result(ranking, check_target(tmp_path / "out.csv"))
    rows = list(read_csv(written.path))
    assert [row["rank"] for row in rows] == [str(n) for n in range(1, len(NASTY))]
    assert rows[0]["id"] == list(NASTY)[-2]


def test_a_file_that_breaks_off_leaves_the_older_one_and_no_rest(
    nasty: Tally, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = check_target(tmp_path / "out.csv")
    target.path.write_text("the older one", encoding="utf-8")

    def broken(*args: object) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr(outputs, "write_csv", broken)
    with pytest.raises(OutputError, match="full"):
        write_result(nasty, target)
    assert target.path.read_text(encoding="utf-8") == "the older one"
    assert [file.name for file in tmp_path.iterdir() if file.name != "spool"] == ["out.csv"]


def test_a_link_keeps_standing_and_what_it_leads_to_is_replaced(
    nasty: Tally, tmp_path: Path
) -> None:
    real = tmp_path / "real.csv"
    real.touch()
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    write_result(nasty, check_target(link))
    assert link.is_symlink()
    assert len(list(read_csv(real))) == len(NASTY)


def test_an_ending_that_is_no_format_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"(?s)'.xlsx'.*\.csv, \.jsonl, \.parquet"):
        check_target(tmp_path / "out.xlsx")


def test_parquet_without_its_package_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "find_spec", nothing_installed)
    with pytest.raises(MissingExtra, match=r"rlm-recurse\[parquet\]"):
        check_target(tmp_path / "out.parquet")


def test_the_source_itself_is_never_an_output(tmp_path: Path) -> None:
    source = tmp_path / "tickets.csv"
    source.write_text("id,text\n1,a\n", encoding="utf-8")
    link = tmp_path / "other.csv"
    link.symlink_to(source)
    with pytest.raises(UsageError, match="the source itself"):
        check_target(link, source=source)


@pytest.mark.parametrize("name", ["no/such/folder.csv", "folder.csv"])
def test_a_place_that_cannot_hold_a_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="the output"):
        check_target(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_the_right_to_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="no right to write"):
        check_target(tmp_path / "out.csv")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_what_a_guard_did_to_any_text_is_undone_exactly(text: str) -> None:
    guard = CellGuard()
    assert restored(guard(text)) == text
    assert guard.replaced == 0


@given(st.text(st.characters(exclude_categories=()), max_size=8))
def test_no_guarded_cell_starts_like_a_formula(text: str) -> None:
    cell = CellGuard()(text)
    cell.encode("utf-8")
    assert cell[:1] not in {
        "=",
        "+",
        "-",
        "@",
        "\t",
        "\r",
        "\n",
        "\uff1d",
        "\uff0b",
        "\uff0d",
        "\uff20",
    }
    assert "\0" not in cell


def test_half_a_character_is_replaced_once_and_counted() -> None:
    guard = CellGuard()
    assert guard("\ud83d\0=") == "\ufffd\u2400="
    assert guard.replaced == 1
    assert guard.formulas == 0


def test_results_are_one_line_in_a_notebook(nasty: Tally) -> None:
    assert repr(nasty) == "Tally(count=3, records=12, unresolved=2)"
    ranked = repr(ranked_by_probability(nasty))
    assert ranked == f"Ranking(records=12, judge={nasty.judge!r})"
