"""One mixed file of every nasty text, from the loader to the files and the terminal."""

import json
from pathlib import Path

import pytest

import rlm
from rlm.outputs import check_target, read_csv, write_result
from rlm.testing import FakeServer, judge_server
from tests.support.nasty import nasty_corpus

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.case("K5-1", "K5-2", "K5-7", "K5-8", "K5-11", "K5-13", "K6-20", "K7-17", "K7-19"),
]


def has_e(text: str) -> bool:
    return "e" in text


def clean(text: str) -> str:
    """What the loader makes of a text: half a character becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.jsonl"
    lines = (json.dumps({"id": r.id, "text": r.text}) for r in nasty_corpus())
    path.write_text("\n\n".join(lines) + '\n{"id": "torn', encoding="utf-8")
    return path


async def counted(mixed: Path) -> tuple[rlm.Tally, rlm.Receipts]:
    async with FakeServer(judge_server(has_e)) as server:
        model = f"openai+{server.base_url}:judge"
        outcome = await rlm.count("Is there an e?", mixed, model=model, run=mixed.parent / "run")
    assert isinstance(outcome, rlm.Completed), outcome
    return outcome.result, outcome.receipts


async def test_the_ledger_adds_up_over_every_nasty_text(mixed: Path) -> None:
    result, receipts = await counted(mixed)
    records = nasty_corpus()
    assert result.records == len(records) == sum(result.states.values())
    assert result.states["empty"] == 3
    assert result.states["unresolved"] == result.states["unsure"] == 0
    assert set(result.matched_ids) == {clean(r.id) for r in records if has_e(r.text)}
    warnings = " ".join(w for node in receipts.nodes for w in node.warnings)
    for said in ("became U+FFFD", "NUL characters", "blank line", "torn last line"):
        assert said in warnings


async def test_receipts_events_and_outputs_reload_equal(mixed: Path, tmp_path: Path) -> None:
    result, receipts = await counted(mixed)
    assert rlm.Receipts.load(receipts.directory) == receipts
    raw = (receipts.directory / "events.jsonl").read_bytes()
    assert all(isinstance(json.loads(line), dict) for line in raw.split(b"\n")[:-1])

    rows = list(result.rows())
    jsonl = tmp_path / "out.jsonl"
    write_result(result, check_target(jsonl))
    lines = [json.loads(line) for line in jsonl.read_bytes().split(b"\n")[:-1]]
    assert [(line["id"], line["state"]) for line in lines] == [(r.id, r.state) for r in rows]

    written = write_result(result, check_target(tmp_path / "out.csv"))
    assert [row["id"] for row in read_csv(written.path)] == [r.id for r in rows]
    assert written.formulas >= 1

    parquet = pytest.importorskip("pyarrow.parquet")
    target = check_target(tmp_path / "out.parquet")
    write_result(result, target)
    assert parquet.read_table(target.path)["id"].to_pylist() == [r.id for r in rows]


async def test_what_people_see_of_it_holds_no_control_characters(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlm.cli import main

    _, receipts = await counted(mixed)
    assert main(["show", str(receipts.directory)]) == 0
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert not [c for c in text if c != "\n" and (ord(c) < 32 or c in "\u202e\x7f\u200b")]
