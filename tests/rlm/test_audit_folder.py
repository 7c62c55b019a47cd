"""Which files of a folder an audit reads, and what is said of all others."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from executors.errors import UsageError, ValidationError
from rlm.auditing.folder import AuditFolder
from rlm.auditing.withheld import is_withheld


def put(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def read(root: Path, **options: object) -> tuple[list[str], dict[str, str]]:
    folder = AuditFolder(root, **options)  # type: ignore[arg-type]
    paths = [record.id for record in folder.records()]
    return paths, {skip.path: skip.reason for skip in folder.skips}


def test_text_files_are_read_in_a_fixed_order_hidden_ones_too(tmp_path: Path) -> None:
    put(tmp_path, "b/y.py", "b/x.py", "a.py", ".github/flow.yml", "z.md")
    assert read(tmp_path) == (["a.py", "z.md", ".github/flow.yml", "b/x.py", "b/y.py"], {})


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.local", "prod.env", "id_rsa", "id_ed25519.pub", "tls.pem", "tls.KEY", "a.p12",
        "store.jks", ".netrc", ".npmrc", "credentials.json", "main.tfstate", "keys.kdbx",
    ],
)  # fmt: skip
def test_files_named_like_secrets_are_never_read_even_when_included(
    tmp_path: Path, name: str
) -> None:
    put(tmp_path, f"sub/{name}", "sub/a.py")
    assert read(tmp_path, include=("*",)) == (["sub/a.py"], {f"sub/{name}": "holds-secrets"})


@pytest.mark.parametrize("name", ["environment.py", "keyboard.py", "pem.md", "monkey", "envelope"])
def test_names_that_only_resemble_secrets_are_read(name: str) -> None:
    assert not is_withheld(name, folder=False)


def test_a_private_key_is_left_alone_whatever_it_is_called(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt", text="\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    put(tmp_path, "docs.md", text="Keys begin with -----BEGIN PRIVATE KEY-----.\n")
    assert read(tmp_path) == (["docs.md"], {"notes.txt": "holds-secrets"})


def test_folders_of_secrets_and_version_control_are_not_gone_into(tmp_path: Path) -> None:
    put(tmp_path, ".git/config", ".ssh/known", "sub/.hg/store", "sub/.aws/config", "a.py")
    skips = {
        ".git/": "version-control",
        ".ssh/": "holds-secrets",
        "sub/.hg/": "version-control",
        "sub/.aws/": "holds-secrets",
    }
    assert read(tmp_path) == (["a.py"], skips)


def test_links_are_not_followed_so_that_none_leads_out_or_to_a_secret(tmp_path: Path) -> None:
    root, outside = tmp_path / "in", tmp_path / "out"
    put(root, "a.py", ".env")
    put(outside, "secret.txt")
    (root / "up").symlink_to(outside)
    (root / "secret").symlink_to(outside / "secret.txt")
    (root / "again.py").symlink_to("a.py")
    (root / "harmless.txt").symlink_to(".env")
    (root / "nothing").symlink_to("gone")
    (root / "round").symlink_to("round")
    assert read(root) == (
        ["a.py"],
        {
            ".env": "holds-secrets",
            "again.py": "link",
            "harmless.txt": "link",
            "nothing": "outside-link",
            "round": "outside-link",
            "secret": "outside-link",
            "up": "outside-link",
        },
    )


def test_binaries_packed_and_big_files_are_skipped_with_their_size(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"ab\0cd")
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\x08rest")
    put(tmp_path, "big.txt", text="x" * 101)
    put(tmp_path, "fits.txt", text="x" * 100)
    folder = AuditFolder(tmp_path, max_file_bytes=100)
    assert [record.id for record in folder.records()] == ["fits.txt"]
    said = {skip.path: (skip.reason, skip.detail) for skip in folder.skips}
    assert said["big.txt"] == ("too-big", "101 bytes; 100 are read")
    assert {said[name][0] for name in ("a.bin", "b.gz")} == {"binary"}


def test_devices_pipes_and_sockets_are_named_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("door")
        expected = {"door": "no-regular-file", "pipe": "no-regular-file"}
        assert read(tmp_path) == (["a.py"], expected)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_the_system_refuses_is_said(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "b.py")
    (tmp_path / "a.py").chmod(0)
    assert read(tmp_path) == (["b.py"], {"a.py": "unreadable"})


def test_runs_of_ours_in_the_folder_are_no_files_of_it(tmp_path: Path) -> None:
    put(tmp_path, "run/events.jsonl", "run/receipt.json", "a.py")
    assert read(tmp_path) == (["a.py"], {"run/": "run-directory"})


def test_patterns_include_and_exclude_as_gitignore_has_them(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "a.md", "tests/t.py", "src/tests.py", "src/gen/g.py")
    paths, skips = read(tmp_path, include=("*.py",), exclude=("tests/", "/src/gen"))
    assert paths == ["a.py", "src/tests.py"]
    assert skips == {"a.md": "not-included", "tests/": "excluded", "src/gen/": "excluded"}


def test_text_in_other_encodings_is_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("grün\n".encode("utf-16"))
    (tmp_path / "b.txt").write_bytes("grün\n".encode("cp1252"))
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbfx\r\ny")
    texts = {record.id: record.text for record in AuditFolder(tmp_path).records()}
    assert texts == {"a.txt": "grün\n", "b.txt": "grün\n", "c.txt": "x\r\ny"}


def test_a_name_that_is_no_unicode_is_still_one_record(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("x", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert read(tmp_path)[0] == ["caf\ufffd.py"]


@pytest.mark.parametrize("pattern", ["", " ", "!"])
def test_a_pattern_that_is_none_is_refused_and_quoted(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ValidationError, match="is no pattern"):
        AuditFolder(tmp_path, include=(pattern,))


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    with pytest.raises(UsageError, match="is no folder"):
        AuditFolder(tmp_path / "a.py")
    with pytest.raises(ValidationError, match="max_file_bytes=0"):
        AuditFolder(tmp_path, max_file_bytes=0)


# ---------------------------------------------------------------- .gitignore


def test_nested_gitignores_are_heard_and_the_nearest_has_the_last_word(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", text="*.log\nbuild/\n/top.txt\n")
    put(tmp_path, "sub/.gitignore", text="!keep.log\n*.tmp\n")
    put(tmp_path, "a.log", "build/x", "top.txt", "sub/top.txt", "sub/keep.log", "sub/a.tmp")
    put(tmp_path, "sub/build/keep.log", "b.tmp")
    paths, skips = read(tmp_path)
    assert paths == [".gitignore", "b.tmp", "sub/.gitignore", "sub/keep.log", "sub/top.txt"]
    assert set(skips) == {"a.log", "build/", "top.txt", "sub/a.tmp", "sub/build/"}
    assert set(skips.values()) == {"ignored"}


def test_gitignores_above_the_folder_are_heard_up_to_the_repository(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", text="*.py\n")  # above the repository: none of its business
    put(tmp_path, "repo/.git/info/exclude", text="*.bak\n")
    put(tmp_path, "repo/.gitignore", text="/pkg/gen.py\n*.pyc\n")
    put(tmp_path, "repo/pkg/a.py", "repo/pkg/gen.py", "repo/pkg/a.pyc", "repo/pkg/a.bak")
    paths, skips = read(tmp_path / "repo" / "pkg")
    assert paths == ["a.py"]
    assert set(skips) == {"gen.py", "a.pyc", "a.bak"}


def test_lines_that_are_no_patterns_and_gitignores_that_are_links_mean_nothing(
    tmp_path: Path,
) -> None:
    put(tmp_path, "rules", text="*.py\n")
    put(tmp_path, "sub/.gitignore", text="!\n\\\n# a word\n*.md\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    put(tmp_path, "a.py", "sub/a.md", "sub/a.py")
    paths, skips = read(tmp_path)
    assert paths == ["a.py", "rules", "sub/.gitignore", "sub/a.py"]
    assert skips == {".gitignore": "link", "sub/a.md": "ignored"}


_NAMES = st.sampled_from(["a", "b.py", "build", "x.log", "d"])
_PATTERNS = st.sampled_from(
    ["a", "*.py", "build/", "/a", "!a", "!*.py", "d/*", "d/**", "**/x.log", "*.l?g", "d/a", "!d/b.py"]
)  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is what is compared with")
@settings(max_examples=20)
@example(paths={"d/b.py"}, top=["d/**"], below=["!*.py"])
@example(paths={"a/b.py/a"}, top=["*.py", "!a"], below=[])
@given(
    paths=st.sets(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
    top=st.lists(_PATTERNS, max_size=4),
    below=st.lists(_PATTERNS, max_size=3),
)
def test_what_is_ignored_is_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], top: list[str], below: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repo")
    files = {p for p in paths if not any(q.startswith(f"{p}/") for q in paths)}
    put(root, *files)
    put(root, ".gitignore", text="\n".join(top))
    if (root / "d").is_dir():
        put(root, "d/.gitignore", text="\n".join(below))
    git = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git, "init", "-q"], check=True)
    command = [*git, "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert set(read(root)[0]) == {path for path in listed.split("\0") if path}
