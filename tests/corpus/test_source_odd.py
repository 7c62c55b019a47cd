"""Names of odd bytes, folders with runs in them, empty mailboxes, and encodings that are none."""

import os
from pathlib import Path

import pytest

from corpus.records import Record
from corpus.sources import open_source
from corpus.spool import build_spool
from executors.errors import DuplicateIds, ValidationError
from tests.support.reading import counted, pairs, records_of, stored


def odd(folder: Path, name: bytes, content: str) -> Path:
    return stored(folder, os.fsdecode(name), content)


def test_names_that_are_no_utf8_are_cleaned_and_counted(tmp_path: Path) -> None:
    odd(tmp_path, b"a\xff.md", "one")
    source = open_source(tmp_path)
    assert pairs(source) == [("a\ufffd.md", "one")]
    assert counted(source) == {"lone-surrogates": 1}
    single = open_source(odd(tmp_path, b"a\xff.md", "one"), format="text")
    assert pairs(single) == [("a\ufffd.md", "one")]
    assert counted(single) == {"lone-surrogates": 1}


@pytest.mark.anyio
async def test_files_and_folders_of_odd_names_can_be_spooled(tmp_path: Path) -> None:
    file = odd(tmp_path / os.fsdecode(b"d\xfe"), b"\xff.csv", "id,text\na,x\n")
    paths = (str(file), str(file.parent), str(file.parent / "*.csv"))
    for number, path in enumerate(paths):
        spool = await build_spool(open_source(path), tmp_path / f"spool{number}")
        assert spool.record(0).where == "\ufffd.csv:2"
        assert spool.info.origins[0].encode()


@pytest.mark.anyio
async def test_names_that_collide_when_cleaned_are_repeated_ids(tmp_path: Path) -> None:
    odd(tmp_path / "in", b"a\xfe.md", "one")
    odd(tmp_path / "in", b"a\xff.md", "two")
    with pytest.raises(DuplicateIds):
        await build_spool(open_source(tmp_path / "in"), tmp_path / "spool")
    spool = await build_spool(
        open_source(tmp_path / "in"), tmp_path / "spool", on_duplicate="suffix"
    )
    assert [record.id for record in spool] == ["a\ufffd.md", "a\ufffd.md#2"]


def test_the_place_of_a_record_in_memory_is_cleaned() -> None:
    (record,) = records_of(open_source([Record(id="a", text="x", where="p\udcff")]))
    assert record.where == "p\ufffd"


@pytest.mark.parametrize("last", ["receipt.json", "spool/records.bin"])
def test_directories_of_runs_in_a_folder_are_passed_over_and_counted(
    tmp_path: Path, last: str
) -> None:
    stored(tmp_path, "a.txt", "one")
    stored(tmp_path, "deep/run/events.jsonl", "{}")
    stored(tmp_path, f"deep/run/{last}", "{}")
    stored(tmp_path, "other/events.jsonl", '{"text": "mine"}')
    stored(tmp_path, "receipt.json", "{}")
    for path in (tmp_path, str(tmp_path / "**" / "*.*")):
        source = open_source(path)
        found = sorted(id_ for id_, _ in pairs(source))
        assert found == ["a.txt", "other/events.jsonl", "receipt.json"]
        assert counted(source) == {"run-directories": 1}


def test_an_empty_mailbox_holds_no_mail_and_an_empty_message_no_text(tmp_path: Path) -> None:
    assert pairs(open_source(stored(tmp_path, "a.mbox", ""))) == []
    assert pairs(open_source(stored(tmp_path, "a.eml", ""))) == [("a.eml", "")]


@pytest.mark.parametrize("name", ["rot13", "hex", "zlib", "undefined", "idna", "", "\0", "\udc80"])
def test_what_decodes_no_text_is_no_encoding(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="unknown encoding"):
        open_source(stored(tmp_path, "a.txt", "one"), encoding=name)


@pytest.mark.parametrize("text", ["日本語の文章\nつぎの行 two\n", "приве́т мир\nдва\nтри\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_of_other_scripts_is_read_without_a_mark(
    tmp_path: Path, text: str, encoding: str
) -> None:
    source = open_source(stored(tmp_path, "a.txt", text.encode(encoding)))
    assert [found for _, found in pairs(source)] == text.splitlines()
    assert source.info.encoding == encoding
