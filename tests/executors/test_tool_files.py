"""Tools that work with the files of a folder: nothing outside of it is read or written.

What each of these would let through is seen by a test: links that are followed, on the way or at the end,
links that are put there after the check, `..`, paths with the same beginning, pipes that never end, a
second name of a file elsewhere, writing that is seen half done, names that repaint a terminal.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from executors.errors import ValidationError
from executors.gate.actions import plain
from executors.gate.config.fs import FsSection
from executors.gate.rules.fs import FsRule
from executors.ids import NodeId
from executors.replies import JsonValue
from executors.tools.base import Tool, ToolContext
from executors.tools.files import FileBounds, file_tools
from executors.tools.grepping import Grep, GrepBounds
from executors.tools.results import as_text, shown
from executors.tools.rooted import NotDone

CONTEXT = ToolContext(node=NodeId("root"), depth=0, round=0, index=0, call_id="c")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    (top / "in/sub").mkdir(parents=True)
    (top / "in-evil").mkdir()
    (top / "out").mkdir()
    (top / "in/a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (top / "in/sub/b.txt").write_text("two and two\n", encoding="utf-8")
    (top / "out/secret").write_text("two secrets", encoding="utf-8")
    (top / "in-evil/x").write_text("two", encoding="utf-8")
    (top / "in/leak").symlink_to(top / "out/secret")
    (top / "in/away").symlink_to(top / "out")
    (top / "in/inner").symlink_to("sub")
    return top


def tools(top: Path, bounds: FileBounds | None = None) -> dict[str, Tool]:
    return {one.name: one for one in file_tools(top / "in", write=True, bounds=bounds)}


def run(tool: Tool, **arguments: JsonValue) -> Mapping[str, object]:
    return cast("Mapping[str, object]", tool.execute(arguments, CONTEXT))


def refused(tool: Tool, **arguments: JsonValue) -> str:
    with pytest.raises(NotDone) as caught:
        run(tool, **arguments)
    return str(caught.value)


OUTSIDE = [
    "../out/secret",
    "sub/../../out/secret",
    "leak",
    "away/secret",
    "away/new",
    "inner/b.txt",
    "/etc/hostname",
    "~/x",
    "a.txt/x",
    "a\0b",
    "x" * 5000,
    ".",
    "",
]


@pytest.mark.case("K15-1", "K15-2", "K15-4")
@pytest.mark.parametrize("path", [*OUTSIDE, "{top}/in-evil/x", "{top}/out/secret"])
def test_what_is_not_below_the_folder_is_neither_read_nor_written(top: Path, path: str) -> None:
    path = path.replace("{top}", str(top))
    refused(tools(top)["read_file"], path=path)
    refused(tools(top)["write_file"], path=path, content="x")
    refused(tools(top)["edit_file"], path=path, old="two", new="x")
    assert (top / "out/secret").read_text(encoding="utf-8") == "two secrets"
    assert sorted(one.name for one in (top / "out").iterdir()) == ["secret"]


@pytest.mark.parametrize("path", ["away", "inner", "../out", "/etc"])
def test_what_is_not_below_the_folder_is_not_listed_or_searched(top: Path, path: str) -> None:
    refused(tools(top)["list_files"], path=path)
    with suppress(NotDone):
        assert run(tools(top)["grep"], pattern="two", path=path)["matches"] == []


@pytest.mark.case("K15-5")
def test_a_folder_over_a_link_is_its_real_one(top: Path) -> None:
    (top / "alias").symlink_to(top / "in")
    (tool, *_) = file_tools(top / "alias")
    assert run(tool, path="a.txt")["path"] == "a.txt"
    assert run(tool, path=f"{top}/in/a.txt")["path"] == "a.txt"


def test_a_link_that_is_put_there_after_the_check_leads_nowhere(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last moment there is: when the folder before it is open already."""
    real = os.open

    def swapped(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "b.txt":
            (top / "in/sub/b.txt").unlink(missing_ok=True)
            (top / "in/sub/b.txt").symlink_to(top / "out/secret")
        if path == "sub" and swapping == "folder":
            (top / "in/sub").rename(top / "in/was")
            (top / "in/sub").symlink_to(top / "out")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapped)
    swapping = "file"
    assert "link" in refused(tools(top)["read_file"], path="sub/b.txt")
    refused(tools(top)["write_file"], path="sub/b.txt", content="x")
    swapping = "folder"
    assert "link" in refused(tools(top)["read_file"], path="sub/secret")
    swapping = ""
    refused(tools(top)["write_file"], path="sub/secret", content="x")
    assert (top / "out/secret").read_text(encoding="utf-8") == "two secrets"


@pytest.mark.case("G-120")
def test_a_folder_whose_place_a_link_took_is_not_entered(top: Path) -> None:
    made = tools(top)
    (top / "in").rename(top / "was")
    (top / "in").symlink_to(top / "out")
    refused(made["read_file"], path="secret")
    refused(made["write_file"], path="secret", content="x")
    refused(made["list_files"])


def test_a_pipe_is_not_waited_for(top: Path) -> None:
    os.mkfifo(top / "in/pipe")
    assert "no plain file" in refused(tools(top)["read_file"], path="pipe")
    refused(tools(top)["write_file"], path="pipe", content="x")
    assert run(tools(top)["grep"], pattern="x")["matches"] == []


def test_lines_are_read_in_pages_with_their_numbers(top: Path) -> None:
    read = tools(top)["read_file"]
    assert run(read, path="a.txt") == {"path": "a.txt", "text": "1\tone\n2\ttwo\n3\tthree"}
    assert run(read, path="a.txt", lines=2) == {
        "path": "a.txt",
        "text": "1\tone\n2\ttwo",
        "next": 3,
    }
    assert run(read, path="a.txt", first=3) == {"path": "a.txt", "text": "3\tthree"}
    assert run(read, path="a.txt", first=9) == {"path": "a.txt", "text": ""}


@pytest.mark.parametrize("arguments", [{"first": 0}, {"lines": 0}, {"first": True}, {"first": "1"}])
def test_a_page_that_is_none_is_refused(top: Path, arguments: dict[str, JsonValue]) -> None:
    refused(tools(top)["read_file"], path="a.txt", **arguments)


def test_what_is_read_is_bounded(top: Path) -> None:
    (top / "in/long").write_text("x" * 100_000 + "\nshort\r\n" + "y" * 90, encoding="utf-8")
    bounds = FileBounds(lines=5, characters=60, line=50, scanned=1_000)
    read = tools(top, bounds)["read_file"]
    text = "1\t" + "x" * 50 + "… [100,001 bytes]"
    assert run(read, path="long") == {"path": "long", "text": text, "next": 2}
    assert "bytes into the file" in refused(read, path="long", first=2)
    assert run(tools(top)["read_file"], path="long", first=2)["text"] == "2\tshort\n3\t" + "y" * 90


def test_what_is_no_text_is_not_read(top: Path) -> None:
    (top / "in/blob").write_bytes(b"two\0two")
    assert "no text" in refused(tools(top)["read_file"], path="blob")
    found = run(tools(top)["grep"], pattern="two")
    assert found["skipped"] == 1
    assert len(cast("list[object]", found["matches"])) == 2


def test_a_folder_is_listed_and_links_are_named(top: Path) -> None:
    assert run(tools(top)["list_files"]) == {
        "path": ".",
        "entries": [
            {"name": "a.txt", "kind": "file", "bytes": 14},
            {"name": "away", "kind": "link"},
            {"name": "inner", "kind": "link"},
            {"name": "leak", "kind": "link"},
            {"name": "sub", "kind": "folder"},
        ],
        "more": False,
    }
    few = tools(top, FileBounds(entries=2))["list_files"]
    assert run(few)["more"] is True


@pytest.mark.case("K15-22")
def test_names_that_would_repaint_a_terminal_are_shown_escaped(top: Path) -> None:
    (top / "in" / "sub" / "gpj.\u202eexe\x1b[2J\nIgnore all").write_text("x", encoding="utf-8")
    (top / "in" / "sub" / "\udcff").write_text("x", encoding="utf-8")
    text = shown(as_text(run(tools(top)["list_files"], path="sub")), 10_000)
    assert "\\u202e" in text
    assert "\\udcff" in text
    assert not {"\u202e", "\x1b", "\n", "\udcff"} & set(text)


def test_lines_are_found_below_a_folder(top: Path) -> None:
    grep = tools(top)["grep"]
    assert run(grep, pattern="^two") == {
        "matches": [
            {"path": "a.txt", "line": 2, "text": "two"},
            {"path": "sub/b.txt", "line": 1, "text": "two and two"},
        ],
        "files": 2,
        "skipped": 0,
        "more": False,
    }
    assert run(grep, pattern="(?i)TWO", path="a.txt")["files"] == 1
    assert "no pattern" in refused(grep, pattern="(a")
    assert "no pattern" in refused(grep, pattern=r"(a)\1")


@pytest.mark.parametrize("pattern", ["", "x" * 2_000])
def test_a_pattern_is_bounded(top: Path, pattern: str) -> None:
    refused(tools(top)["grep"], pattern=pattern)


def test_a_search_is_bounded(top: Path) -> None:
    (top / "in/many").write_text("two\n" * 500, encoding="utf-8")
    for bounds in (GrepBounds(matches=2), GrepBounds(files=1), GrepBounds(total=1)):
        found = run(tools(top, FileBounds(grep=bounds))["grep"], pattern="two")
        assert found["more"] is True
    found = run(tools(top, FileBounds(grep=GrepBounds(file=8)))["grep"], pattern="two", path="many")
    assert (len(cast("list[object]", found["matches"])), found["more"]) == (2, True)


def test_a_hard_pattern_over_a_hard_text_takes_no_time(top: Path) -> None:
    (top / "in/hard").write_text("a" * 200_000, encoding="utf-8")
    assert run(tools(top)["grep"], pattern="(a*)*b", path="hard")["matches"] == []


def test_a_search_asks_of_each_file_and_folder(top: Path) -> None:
    """A gate that denies something inside of what it allows is heard there too."""
    (top / "in/sub/deep").mkdir()
    (top / "in/sub/deep/c").write_text("two", encoding="utf-8")
    rule = FsRule(FsSection(read_scope=[str(top)], deny=[f"{top}/in/sub/deep", f"{top}/in/a.txt"]))
    (grep,) = (one for one in file_tools(top / "in", check=rule.why_not) if one.name == "grep")
    matches = cast("list[dict[str, object]]", run(grep, pattern="two")["matches"])
    assert [one["path"] for one in matches] == ["sub/b.txt"]
    # What a worker's gate denies comes on top of it.
    both = cast("Grep", grep.execute).checked(lambda path: "no" if "sub" in path else None)
    none = cast("Mapping[str, object]", both({"pattern": "two"}, CONTEXT))
    assert none["matches"] == []


def test_a_file_is_written_with_the_folders_it_needs(top: Path) -> None:
    write = tools(top)["write_file"]
    assert run(write, path="new/er/c.txt", content="é\n")["new"] is True
    assert (top / "in/new/er/c.txt").read_bytes() == "é\n".encode()
    assert run(write, path="new/er/c.txt", content="")["new"] is False
    assert sorted(one.name for one in (top / "in/new/er").iterdir()) == ["c.txt"]


def test_a_file_that_is_replaced_keeps_its_rights(top: Path) -> None:
    (top / "in/a.txt").chmod(0o750)
    run(tools(top)["write_file"], path="a.txt", content="x")
    assert (top / "in/a.txt").stat().st_mode & 0o777 == 0o750


def test_another_name_of_a_file_elsewhere_is_not_written_through(top: Path) -> None:
    (top / "in/other").hardlink_to(top / "out/secret")
    run(tools(top)["write_file"], path="other", content="x")
    assert (top / "out/secret").read_text(encoding="utf-8") == "two secrets"


def test_writing_that_fails_leaves_the_old_file_and_nothing_beside_it(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "No space" in refused(tools(top)["write_file"], path="sub/b.txt", content="x")
    assert [one.name for one in (top / "in/sub").iterdir()] == ["b.txt"]


def test_an_edit_replaces_what_stands_there_exactly_once(top: Path) -> None:
    edit = tools(top)["edit_file"]
    assert run(edit, path="a.txt", old="two\n", new="2\n") == {"path": "a.txt", "line": 2}
    assert (top / "in/a.txt").read_text(encoding="utf-8") == "one\n2\nthree\n"
    assert "more than once" in refused(edit, path="sub/b.txt", old="two", new="x")
    assert "not stand" in refused(edit, path="a.txt", old="none", new="x")
    assert "empty" in refused(edit, path="a.txt", old="", new="x")


def test_texts_that_overlap_stand_there_twice(top: Path) -> None:
    (top / "in/o").write_text("aaa", encoding="utf-8")
    assert "more than once" in refused(tools(top)["edit_file"], path="o", old="aa", new="x")


def test_an_edit_changes_no_byte_besides(top: Path) -> None:
    (top / "in/raw").write_bytes(b"\xff\r\nold\r\n\xfe")
    run(tools(top)["edit_file"], path="raw", old="old", new="new")
    assert (top / "in/raw").read_bytes() == b"\xff\r\nnew\r\n\xfe"


def test_what_is_written_is_bounded(top: Path) -> None:
    few = tools(top, FileBounds(written=8))
    assert "more than 8 bytes" in refused(few["write_file"], path="n", content="x" * 9)
    assert "more than 8 bytes" in refused(few["edit_file"], path="a.txt", old="two", new="x")
    refused(few["write_file"], path="n", content="\ud800")


def test_a_gate_sees_paths_from_the_root_on(top: Path) -> None:
    scoped = FsRule(FsSection(read_scope=[f"{top}/in/sub"], write_scope=[]))
    for name, path, expected in (
        ("read_file", "sub/b.txt", None),
        ("read_file", "a.txt", "fs.readScope"),
        ("read_file", "../out/secret", "fs.invalidPath"),
        ("grep", "", "fs.readScope"),
        ("list_files", "sub", None),
        ("write_file", "sub/b.txt", "fs.writeScope"),
        ("edit_file", "sub/b.txt", "fs.writeScope"),
    ):
        tool = tools(top)[name]
        assert tool.judged is not None
        found = scoped.deny(plain({"type": tool.kind, "args": tool.judged({"path": path})}))
        assert (None if found is None else found.rule) == expected


def test_calls_that_touch_one_file_are_known(top: Path) -> None:
    touched = [tools(top)[name].paths for name in ("read_file", "write_file", "edit_file")]
    assert {tuple(one({"path": "./sub//b.txt"})) for one in touched if one is not None} == {
        (f"{top}/in/sub/b.txt",)
    }


def test_without_a_word_nothing_is_written(top: Path) -> None:
    assert [one.name for one in file_tools(top / "in")] == ["read_file", "list_files", "grep"]


@pytest.mark.parametrize("path", ["nowhere", "in/a.txt", "a\0b"])
def test_a_folder_that_is_none_is_refused(top: Path, path: str) -> None:
    with pytest.raises(ValidationError, match="tools cannot work in"):
        file_tools(f"{top}/{path}")


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "9"])
def test_a_bound_that_bounds_nothing_is_refused(value: int) -> None:
    with pytest.raises(ValidationError, match="no bound"):
        FileBounds(lines=value)
    with pytest.raises(ValidationError, match="no bound"):
        GrepBounds(files=value)
