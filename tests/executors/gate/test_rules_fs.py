"""Which files a tool may touch: by where paths really lead, on both sides.

What each of these would let through is seen by a test: paths compared by letters, links that are not
followed, or followed on one side alone, names with the same beginning, folders that are not there yet, a
scope that becomes a link, another spelling of what is denied, a second path beside the first.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from executors.errors import ConfigError
from executors.gate.actions import Action, plain
from executors.gate.config.fs import FsSection
from executors.gate.decisions import Deny
from executors.gate.rules.fs import FsRule
from executors.gate.rules.paths import Place, located


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A scope `in`, a neighbour with the same beginning, and links that lead out and nowhere."""
    top = tmp_path.resolve()
    for folder in ("in/sub", "in-evil", "out/deep", "in/secrets", "in/secrets-public"):
        (top / folder).mkdir(parents=True)
    for file in ("in/a", "in-evil/x", "out/a", "out/deep/x", "in/secrets/k", "in/secrets-public/k"):
        (top / file).write_text("text", encoding="utf-8")
    for link, target in {
        "in/leak": top / "out/a",
        "in/away": top / "out",
        "in/deep": top / "out/deep",
        "in/relative": Path("../out"),
        "in/inner": top / "in/sub",
        "in/dead": top / "in/nothing",
        "in/dead-out": top / "out/nothing",
        "in/circle": Path("circle"),
    }.items():
        (top / link).symlink_to(target)
    return top


def rule(read: Sequence[str] | None = None, **keys: list[str]) -> FsRule:
    return FsRule(FsSection(read_scope=None if read is None else list(read), **keys))


def asked(kind: str, path: object) -> Action:
    return plain({"type": kind, "path": path})


def verdict(rule: FsRule, action: Action) -> str:
    found = rule.deny(action)
    if found is None:
        return ""
    assert found.reason
    return found.rule


def case(row: str, *values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.case(row), id=f"{row}:{values[0]}")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        case("G-096", "in/../../etc/passwd", "fs.readScope"),
        case("G-096", "in/sub/../../out/a", "fs.readScope"),
        case("G-096", "in/not/there/../../../out/a", "fs.readScope"),
        case("K15-2", "in-evil/x", "fs.readScope"),
        case("G-101", "in", ""),
        case("G-101", "in/", ""),
        case("G-101", "in/./sub/../a", ""),
        case("G-114", "in/leak", "fs.readScope.symlinkEscape"),
        case("K15-1", "in/relative/a", "fs.readScope.symlinkEscape"),
        case("G-114", "in/inner", ""),
        case("G-115", "in/deep/../a", "fs.readScope.symlinkEscape"),
        case("G-115", "in/inner/../a", ""),
        case("G-116", "in/dead", "fs.readScope.danglingSymlink"),
        case("G-116", "in/dead/x", "fs.readScope.danglingSymlink"),
        case("G-116", "in/dead-out", "fs.readScope.symlinkEscape"),
        case("G-116", "in/circle", "fs.readScope.resolveError"),
        case("K15-4", "in/away/new.txt", "fs.readScope.symlinkEscape"),
        case("K15-4", "in/away/new/er.txt", "fs.readScope.symlinkEscape"),
        case("G-118", "in/new/er/file.txt", ""),
        case("G-116", "in/a/below-a-file", "fs.readScope.resolveError"),
    ],
)
def test_a_path_is_judged_by_where_it_leads(top: Path, path: str, expected: str) -> None:
    assert verdict(rule([str(top / "in")]), asked("read", f"{top}/{path}")) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        case("G-098", "in/./secrets/k", "fs.deny"),
        case("G-098", "out/../in/secrets/k", "fs.deny"),
        case("G-098", "in/secrets", "fs.deny"),
        case("G-098", "in/inner/../secrets/k", "fs.deny"),
        case("G-098", "out/back/k", "fs.deny"),
        case("G-099", "in/secrets-public/k", ""),
        case("G-100", "in/secrets", "fs.deny"),
        case("G-103", "in/secrets/new", "fs.deny"),
    ],
)
def test_what_is_denied_is_denied_inside_a_scope_and_by_every_name(
    top: Path, path: str, expected: str
) -> None:
    (top / "out/back").symlink_to(top / "in/secrets")
    denying = rule([str(top)], deny=[f"{top}/in/secrets/"])
    assert verdict(denying, asked("read", f"{top}/{path}")) == expected


def test_a_hard_link_to_a_denied_file_is_denied(top: Path) -> None:
    (top / "in/other").hardlink_to(top / "out/a")
    denying = rule([str(top / "in")], deny=[f"{top}/out/a"])
    assert verdict(denying, asked("read", f"{top}/in/other")) == "fs.deny"


def test_what_is_denied_before_it_is_there_is_denied_over_links_too(top: Path) -> None:
    denying = rule([str(top)], deny=[f"{top}/in/sub/new"])
    assert verdict(denying, asked("read", f"{top}/in/inner/new/k")) == "fs.deny"


@pytest.mark.case("K15-5")
def test_a_denied_entry_that_is_a_link_denies_what_it_leads_to(top: Path) -> None:
    denying = rule([str(top)], deny=[f"{top}/in/away"])
    assert verdict(denying, asked("read", f"{top}/out/a")) == "fs.deny"
    assert verdict(denying, asked("read", f"{top}/in/away")) == "fs.deny"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        case("G-111", "read", "fs.readScope.unset"),
        case("G-104", "write", ""),
        case("G-104", "edit", ""),
        case("G-104", "fetch", ""),
        case("G-104", "search", ""),
    ],
)
def test_each_kind_has_its_own_scope(top: Path, kind: str, expected: str) -> None:
    writing = rule(write_scope=[str(top / "in")])
    assert verdict(writing, asked(kind, f"{top}/in/a")) == expected


@pytest.mark.case("G-104")
def test_an_edit_outside_the_scope_for_writing_is_denied(top: Path) -> None:
    both = rule([str(top)], write_scope=[str(top / "in")])
    assert verdict(both, asked("edit", f"{top}/out/a")) == "fs.writeScope"
    assert verdict(both, asked("write", f"{top}/in/leak")) == "fs.writeScope.symlinkEscape"


@pytest.mark.case("G-110")
def test_nothing_configured_permits_nothing(top: Path) -> None:
    assert verdict(rule(), asked("read", f"{top}/in/a")) == "fs.readScope.unset"
    assert verdict(rule(), asked("write", f"{top}/in/a")) == "fs.writeScope.unset"


@pytest.mark.case("G-121")
def test_an_empty_scope_permits_nothing(top: Path) -> None:
    assert verdict(rule([]), asked("read", f"{top}/in/a")) == "fs.readScope"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        case("G-105", ["/a"], "fs.invalidPath"),
        case("G-105", {"a": 1}, "fs.invalidPath"),
        case("G-105", 7, "fs.invalidPath"),
        case("G-105", b"/a", "fs.invalidPath"),
        case("G-105", True, "fs.invalidPath"),
        case("G-108", "/tmp/a\0b", "fs.invalidPath"),
        case("G-108", "/" + "a" * 5000, "fs.invalidPath"),
        case("G-109", "", "fs.invalidPath"),
        case("G-109", None, "fs.invalidPath"),
        case("G-113", "~/x", "fs.homePath"),
        case("G-113", "~root/x", "fs.homePath"),
        case("G-113", "in/a", "fs.relativePath"),
        case("G-113", "./in/a", "fs.relativePath"),
    ],
)
def test_what_is_no_absolute_path_is_refused(path: object, expected: str) -> None:
    assert verdict(rule(["/"]), asked("read", path)) == expected


@pytest.mark.case("G-109")
def test_no_path_at_all_is_refused() -> None:
    assert verdict(rule(["/"]), plain({"type": "read"})) == "fs.invalidPath"


@pytest.mark.case("G-106")
def test_every_path_of_an_action_has_to_pass_and_be_the_same(top: Path) -> None:
    scoped = rule([str(top / "in")])
    inside, outside = f"{top}/in/a", f"{top}/out/a"
    for action, expected in (
        ({"args": {"path": outside}}, "fs.readScope"),
        ({"path": inside, "args": {"path": outside}}, "fs.readScope"),
        ({"path": outside, "args": {"path": inside}}, "fs.readScope"),
        ({"path": inside, "args": {"path": f"{top}/in/sub"}}, "fs.invalidPath"),
        ({"path": inside, "args": {"path": inside}}, ""),
    ):
        assert (
            verdict(scoped, plain({"type": "read", **cast("dict[str, object]", action)}))
            == expected
        )


@pytest.mark.case("G-113")
def test_the_home_of_who_made_the_rule_is_meant_once(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(top / "in"))
    homely = rule(["~/sub"])
    monkeypatch.setenv("HOME", str(top / "out"))
    assert verdict(homely, asked("read", f"{top}/in/sub/x")) == ""
    assert verdict(homely, asked("read", f"{top}/out/sub/x")) == "fs.readScope"


@pytest.mark.parametrize("key", ["read_scope", "write_scope", "deny"])
@pytest.mark.parametrize("entry", ["~root/x", "relative", "", "./x", "/a\0b", "/" + "a" * 5000])
@pytest.mark.case("G-113")
def test_an_entry_that_is_no_absolute_path_is_refused(key: str, entry: str) -> None:
    with pytest.raises(ConfigError, match=rf"fs\.{key}"):
        FsRule(FsSection.model_validate({key: [entry]}))


@pytest.mark.case("G-119", "K15-5")
@pytest.mark.parametrize("entry", ["in/away", "in/away/deep", "in/relative"])
def test_a_scope_over_a_link_is_refused_with_the_real_path(top: Path, entry: str) -> None:
    """Rather than denying all that is below it, or following whoever puts a link there next."""
    real = os.path.realpath(top / entry)
    with pytest.raises(ConfigError, match=f"link; it leads to '{real}'"):
        rule([f"{top}/{entry}"])
    assert verdict(rule([real]), asked("read", f"{top}/{entry}/a")) == ""


@pytest.mark.case("G-120")
def test_a_scope_that_became_a_link_permits_nothing(top: Path) -> None:
    scoped = rule([str(top / "in/sub")])
    assert verdict(scoped, asked("read", f"{top}/in/sub/x")) == ""
    (top / "in").rename(top / "was")
    (top / "in").symlink_to(top / "was")
    assert verdict(scoped, asked("read", f"{top}/in/sub/x")) == "fs.readScope.symlinkRoot"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
@pytest.mark.parametrize("path", ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0"])
def test_links_that_differ_by_process_are_not_followed(path: str) -> None:
    assert verdict(rule(["/"]), asked("read", path)) == "fs.readScope.resolveError"


@pytest.mark.parametrize("scope", ["/a", {"/a"}, 7, [7], [b"/a"], {"a": 1}])
def test_a_scope_that_is_no_list_of_texts_is_refused(scope: object) -> None:
    with pytest.raises(ValidationError):
        FsSection.model_validate({"read_scope": scope})


def test_reasons_show_names_escaped(top: Path) -> None:
    found = rule([str(top)]).deny(asked("read", "/out/\u202etxt.\x1b[2J"))
    assert found is not None
    assert "\\u202e" in found.reason
    assert "\x1b" not in found.reason


def test_only_links_and_their_targets_are_read(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check opens nothing: a device or a pipe would do something."""
    scoped = rule([str(top / "in")], deny=[str(top / "out")])

    def opened(*given: object, **more: object) -> object:
        raise AssertionError(given)

    for name in ("open", "scandir", "listdir", "stat"):
        monkeypatch.setattr(os, name, opened)
    assert verdict(scoped, asked("read", f"{top}/in/inner/x")) == ""


PARTS = st.sampled_from(
    ["in", "out", "sub", "away", "inner", "deep", "dead", "..", ".", "", "a", "x"]
)


@given(parts=st.lists(PARTS, max_size=8))
def test_a_path_leads_where_the_system_says(
    parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = _tree(tmp_path_factory)
    path = "/".join([str(top), *parts])
    place = located(path)
    if isinstance(place, Place):
        assert place.text == os.path.realpath(path)


def _tree(factory: pytest.TempPathFactory) -> Path:
    top = Path(factory.getbasetemp()).resolve() / "walked"
    if not top.exists():
        (top / "in/sub").mkdir(parents=True)
        (top / "out/deep").mkdir(parents=True)
        (top / "in/away").symlink_to("../out")
        (top / "in/inner").symlink_to(top / "in/sub")
        (top / "in/deep").symlink_to(top / "in/away/deep")
        (top / "in/dead").symlink_to("nothing/at/../all")
        (top / "in/a").write_text("a", encoding="utf-8")
    return top


@given(
    path=st.text()
    | st.text(alphabet="/.~ab\0\ud800\udcff")
    | st.binary()
    | st.none()
    | st.integers()
)
def test_no_path_whatever_raises(path: object) -> None:
    judged = rule(["/tmp"], deny=["/etc"])
    assert isinstance(judged.deny(asked("write", path)), Deny | None)
    if isinstance(path, str):
        located(f"/{path}")
