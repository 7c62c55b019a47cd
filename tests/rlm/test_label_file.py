"""Labels on disk: every doubt has a line, every key survives a crash."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from executors.clock import VirtualClock
from executors.errors import LabelsError
from rlm.labelling.file import read_labels
from rlm.labelling.writer import LabelFile
from rlm.labels import Label


def write(folder: Path, text: str | bytes, name: str = "labels.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def pairs(file: Path) -> list[tuple[str, str]]:
    return [(label.id, label.label) for label in read_labels(file)]


def test_a_file_with_id_and_label_is_enough(tmp_path: Path) -> None:
    assert read_labels(write(tmp_path, "id,label\n1,yes\n2,no\n")) == [
        Label(id="1", label="yes"),
        Label(id="2", label="no"),
    ]


@pytest.mark.case("K7-1")
def test_a_spreadsheet_export_with_a_mark_and_other_columns_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, "\ufeffLabel;x\n".replace(";", ",") + "yes,1\n")
    with pytest.raises(LabelsError, match=r"0 column\(s\) named 'id'"):
        read_labels(file)
    file = write(tmp_path, "\ufeff ID ,note,Label,By\r\n7,hm,yes,ann\r\n\r\n")
    assert read_labels(file) == [Label(id="7", label="yes", by="ann")]


def test_tabs_and_json_lines_are_read_too(tmp_path: Path) -> None:
    assert pairs(write(tmp_path, "id\tlabel\na,b\tyes\n", "x.tsv")) == [("a,b", "yes")]
    lines = '{"id": 1, "label": true}\n\n{"id": "b\\u2028", "label": "no", "by": null}\n'
    assert pairs(write(tmp_path, lines, "x.jsonl")) == [("1", "true"), ("b\u2028", "no")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "x.csv",
            "id,label\n1,yes\n2\n",
            snapshot("""\
a row of 1 cell(s) under a header of 2
x.csv:3
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
        (
            "x.csv",
            "id,text\n1,yes\n",
            snapshot("""\
0 column(s) named 'label' among ['id', 'text']
x.csv:1
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
        (
            "x.csv",
            "id,label\n1,yes\n1,NO\n",
            snapshot("""\
record '1' is labelled both 'yes' and 'NO'
x.csv:2 and x.csv:3
keep one of the two lines\
"""),
        ),
        (
            "x.csv",
            'id,label\n"a\nb",yes\n ,no\n',
            snapshot("""\
the id ' ' is blank
x.csv:4
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
        (
            "x.csv",
            b"id,label\ncaf\xe9,yes\n",
            snapshot("""\
byte 0xe9 is not UTF-8
x.csv, byte 12
save the labels file as UTF-8\
"""),
        ),
        (
            "x.jsonl",
            '{"id": 1}\n',
            snapshot("""\
0 column(s) named 'label' among ['id']
x.jsonl:1
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
        (
            "x.jsonl",
            '{"id": 1, "label": "yes"}\n{"id"\n',
            snapshot("""\
no JSON: unexpected end of data: line 1 column 6 (char 5)
x.jsonl:2
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
        (
            "x.jsonl",
            "[1]\n",
            snapshot("""\
no JSON object: '[1]'
x.jsonl:1
a labels file has the columns id,label and may have by,at,weight\
"""),
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    name: str, text: str | bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text, name)
    with pytest.raises(LabelsError) as caught:
        read_labels(name)
    assert str(caught.value) == message


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(LabelsError, match="cannot be read: No such file"):
        read_labels(tmp_path / "none.csv")


def test_the_same_label_twice_is_one_and_case_makes_no_conflict(tmp_path: Path) -> None:
    assert pairs(write(tmp_path, "id,label\n1,yes\n1,YES\n")) == [("1", "yes")]


def test_a_withdrawn_label_is_gone_and_may_come_back_otherwise(tmp_path: Path) -> None:
    file = write(tmp_path, "id,label\n1,yes\n2,no\n1,\n1,no\n2,\n")
    assert pairs(file) == [("1", "no")]


def test_each_label_is_on_disk_when_add_returns(tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    with LabelFile(file, by="ann", clock=VirtualClock()) as labels:
        made = labels.add("a,1", "yes")
        assert file.read_text(encoding="utf-8") == snapshot("""\
id,label,by,at,weight
"a,1",yes,ann,2026-01-01T00:00:00+00:00,
""")
    assert read_labels(file) == [made]
    assert made == Label(id="a,1", label="yes", by="ann", at="2026-01-01T00:00:00+00:00")


def test_labelling_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = write(tmp_path, "label,id\nyes,1")
    with LabelFile(file, by="ann", clock=VirtualClock()) as labels:
        assert labels.known == (Label(id="1", label="yes"),)
        labels.add("2", "no")
        labels.withdraw("1")
    assert file.read_text(encoding="utf-8") == snapshot("""\
label,id
yes,1
no,2
,1
""")
    assert pairs(file) == [("2", "no")]


@pytest.mark.parametrize(
    ("tail", "kept"),
    [("3,y", 2), ('"3\r\n4",ye', 2), ('"', 2), ("3,yes,ann,2026", 3), ("3,yes,ann,2026\r\n", 3)],
)
def test_a_last_row_that_a_crash_cut_short_is_cut_off(tail: str, kept: int, tmp_path: Path) -> None:
    file = write(tmp_path, 'id,label,by,at\r\n1,yes,ann,\r\n"2\n",no,ann,\r\n' + tail)
    with LabelFile(file, by="bob", clock=VirtualClock()) as labels:
        assert len(labels.known) == kept
        labels.add("9", "no")
    assert len(pairs(file)) == kept + 1


def test_two_people_do_not_append_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    with LabelFile(file, by="ann"), pytest.raises(LabelsError, match="somebody else is appending"):
        LabelFile(file, by="bob")
    with LabelFile(file, by="bob"):
        pass


def test_labels_are_not_appended_to_what_is_no_labels_file(tmp_path: Path) -> None:
    corpus = write(tmp_path, "id,text\n1,hello\n", "tickets.csv")
    with pytest.raises(LabelsError, match=r"named 'label'"):
        LabelFile(corpus, by="ann")
    assert corpus.read_text(encoding="utf-8") == "id,text\n1,hello\n"
    with pytest.raises(LabelsError, match="appended to CSV"):
        LabelFile(tmp_path / "x.jsonl", by="ann")
    with pytest.raises(LabelsError, match="cannot be opened"):
        LabelFile(tmp_path / "no" / "x.csv", by="ann")


def test_an_id_that_is_a_formula_is_inert_in_the_file_and_itself_when_read(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    with LabelFile(file, by="=cmd", clock=VirtualClock()) as labels:
        labels.add("=1+1", "yes")
    assert "'=1+1" in file.read_text(encoding="utf-8")
    assert read_labels(file)[0].id == "=1+1"
    assert read_labels(file)[0].by == "=cmd"


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip),
        st.sampled_from(["yes", "no"]),
        max_size=5,
    )
)
def test_any_id_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, labels: dict[str, str]
) -> None:
    file = tmp_path_factory.mktemp("ids") / "x.csv"
    with LabelFile(file, by="ann") as writer:
        for id_, label in labels.items():
            writer.add(id_, label)
    assert dict(pairs(file)) == labels
