"""The catalogue of the benchmarks' corpora, and the script that fetches them."""

import bz2
import importlib.util
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).parents[2]

if TYPE_CHECKING:
    from tests.bench import fetch
else:  # a script, not a package that can be imported by name
    _spec = importlib.util.spec_from_file_location(
        "bench_fetch", ROOT / "tests" / "bench" / "fetch.py"
    )
    fetch = sys.modules["bench_fetch"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(fetch)


@pytest.fixture(scope="module")
def known() -> "fetch.Catalogue":
    return fetch.catalogue()


def test_the_catalogue_states_the_true_counts(known: "fetch.Catalogue") -> None:
    assert {name: task.true for name, task in known.tasks.items()} == {
        "spam": 1896,
        "sport": 511,
        "business": 510,
        "forsale": 390,
        "medicine": 396,
        "acquisition": 696,
        "positive-review": 7403,
        "corn": 24,
    }


def test_the_catalogue_agrees_with_itself(known: "fetch.Catalogue") -> None:
    for corpus in known.corpora.values():
        assert sum(corpus.labels.values()) == corpus.records
        assert corpus.package in known.packages
        assert set(corpus.rename.values()) <= set(corpus.labels)
    for task in known.tasks.values():
        assert known.corpora[task.corpus].labels[task.positive] == task.true


def test_every_file_is_pinned_by_hash(known: "fetch.Catalogue") -> None:
    pins = [package.sha256 for package in known.packages.values()]
    pins += [corpus.member_sha256 for corpus in known.corpora.values()]
    pins += [corpus.jsonl_sha256 for corpus in known.corpora.values()]
    assert all(re.fullmatch("[0-9a-f]{64}", pin) for pin in pins)


def test_no_research_text_is_committed(known: "fetch.Catalogue") -> None:
    """Besides the public-domain mails, the repository holds the catalogue alone."""
    assert [path.name for path in fetch.CATALOGUE.parent.iterdir()] == ["corpora.json"]
    own = [name for name, package in known.packages.items() if package.kind == "repository"]
    assert own == ["spamassassin"]


def test_the_demo_corpus_is_fetched_without_a_network(
    known: "fetch.Catalogue", tmp_path: Path
) -> None:
    """Its ids are those of the teaching labels; the subject stands above the body."""
    lines = fetch.fetch("spamassassin", known, tmp_path).splitlines()
    first = json.loads(lines[0])
    assert first["id"] == "m0001"
    assert set(first) == {"id", "text", "label"}
    assert len(lines) == 6046


def _package(data: bytes, file: str = "one.whl") -> "fetch.Package":
    return fetch.Package(
        kind="pip", requirement="one==1", file=file, sha256=fetch.sha256(data), licence="none"
    )


def test_a_kept_package_is_checked_again(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    kept = tmp_path / "packages" / "one.whl"
    kept.write_bytes(b"right")
    assert fetch.obtain(_package(b"right"), tmp_path) == kept
    kept.write_bytes(b"wrong")
    with pytest.raises(fetch.FetchError, match="remove that file"):
        fetch.obtain(_package(b"right"), tmp_path)


@pytest.mark.parametrize(
    ("kind", "tool"), [("pip", "-m pip download"), ("apt", "apt-get download")]
)
def test_a_failing_download_says_what_was_run_and_leaves_nothing(
    kind: str, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], **_: object) -> object:
        return subprocess.CompletedProcess(command, 1, "", "no such version")

    monkeypatch.setattr(subprocess, "run", fail)
    wanted = _package(b"right").model_copy(update={"kind": kind})
    with pytest.raises(fetch.FetchError, match=rf"(?s){tool}.*no such version"):
        fetch.obtain(wanted, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["packages"]
    assert not list((tmp_path / "packages").iterdir())


def _corpus(found: dict[str, bytes], member: str, **changes: object) -> "fetch.Corpus":
    digest = fetch.sha256(found[member]) if member in found else "0" * 64
    values: dict[str, object] = {
        "package": "one",
        "member": member,
        "member_sha256": digest,
        "layout": "tab",
        "id_prefix": "x",
        "records": 1,
        "empty": 0,
        "labels": {},
        "jsonl_sha256": "",
        "caution": "",
    }
    return fetch.Corpus.model_validate(values | changes)


def test_a_changed_member_is_refused() -> None:
    """For a folder as for a file: a renamed text would move to another label."""
    found = {"d/a/1.txt": b"one"}
    folder = _corpus(
        found, "d/", member_sha256=fetch.sha256(f"{fetch.sha256(b'one')}  d/a/1.txt\n".encode())
    )
    assert fetch.chosen(found, folder) == found
    with pytest.raises(fetch.FetchError, match="catalogue differs"):
        fetch.chosen({"d/b/1.txt": b"one"}, folder)
    with pytest.raises(fetch.FetchError, match="catalogue differs"):
        fetch.chosen({"f": b"new"}, _corpus({"f": b"old"}, "f"))


def test_folders_give_the_label() -> None:
    found = {"d/sport/1.txt": "£5".encode(), "d/tech/1.txt": "£5".encode("latin-1")}
    assert [row[1:] for row in fetch.folders(found)] == [("£5", "sport"), ("£5", "tech")]


def test_a_table_starts_below_its_three_lines() -> None:
    data = b"Category\tText\nd\tstring\nclass\t\n\nearn\tnet shr\nacq\tbuys it\n"
    assert list(fetch.tab({"t": data})) == [("1", "net shr", "earn"), ("2", "buys it", "acq")]


def test_plots_are_no_reviews() -> None:
    packed = bz2.compress(b'category,text\nplot,A man\nfresh,"Good, very"\nrotten,Bad\n')
    rows = [row[1:] for row in fetch.reviews({"r": packed})]
    assert rows == [("Good, very", "fresh"), ("Bad", "rotten")]


def test_escapes_of_a_weka_row_are_read() -> None:
    data = rb"""@data

'SUGAR\'S \"RISE\" &lt;X>\n    up',0
'C:\\corn',1
"""
    rows = [row[1:] for row in fetch.arff({"a": data})]
    assert rows == [('SUGAR\'S "RISE" <X>\n    up', "0"), (r"C:\corn", "1")]


def test_records_are_shuffled_renamed_and_counted() -> None:
    rows = [(str(n), f" text {n}\r\n", "a" if n < 10 else "b") for n in range(20)]
    text = fetch.json_lines(rows, _corpus({"f": b""}, "f", rename={"a": "A"}))
    records = [json.loads(line) for line in text.splitlines()]
    assert [record["id"] for record in records] == [f"x{n:05}" for n in range(1, 21)]
    assert {record["label"] for record in records[:10]} == {"A", "b"}
    assert {record["text"] for record in records} == {f"text {n}" for n in range(20)}
    assert fetch.counted(text) == (20, 0, {"A": 10, "b": 10})


def test_wheels_are_read_without_unpacking(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../outside.txt", "in")
    (tmp_path / "one.whl").write_bytes(packed.getvalue())
    assert fetch.members(tmp_path / "one.whl") == {"../outside.txt": b"in"}
    assert [path.name for path in tmp_path.iterdir()] == ["one.whl"]
