"""The guard that refuses to run on foreign packages named like ours."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rlm import _siblings

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, *ahead: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python with the given folders ahead of ours on the path."""
    path = [*map(str, ahead), str(ROOT)]
    code = f"import sys; sys.path[:0] = {path!r}\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def foreign(folder: Path, name: str, text: str) -> Path:
    """Make a foreign package, or a lone script when the name ends in .py; return its folder."""
    file = folder / name if name.endswith(".py") else folder / name / "__init__.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("sibling", _siblings.SIBLINGS)
def test_a_foreign_package_ahead_of_ours_is_named_and_not_executed(
    tmp_path: Path, sibling: str
) -> None:
    ahead = foreign(tmp_path, sibling, "raise SystemExit('foreign code ran')\n")
    done = run("import rlm", ahead)
    assert done.returncode == 1
    assert "foreign code ran" not in done.stderr
    assert (
        f"ImportError: {sibling!r} comes from {str(ahead / sibling / '__init__.py')!r}"
        in done.stderr
    )
    assert "environment of its own" in done.stderr


def test_a_script_beside_the_users_own_is_enough_to_hide_ours_and_is_named(tmp_path: Path) -> None:
    done = run("import rlm", foreign(tmp_path, "planner.py", "x = 1\n"))
    assert f"'planner' comes from {str(tmp_path / 'planner.py')!r}" in done.stderr


def test_every_intruder_is_named_at_once(tmp_path: Path) -> None:
    foreign(tmp_path, "planner", "")
    done = run("import rlm", foreign(tmp_path, "executors", ""))
    assert "'planner' comes from" in done.stderr
    assert "'executors' comes from" in done.stderr


def test_a_foreign_package_that_was_imported_before_rlm_is_named_too(tmp_path: Path) -> None:
    ahead = foreign(tmp_path, "corpus", "x = 1\n")
    done = run("import corpus\nimport rlm", ahead)
    assert "'corpus' comes from" in done.stderr


def test_a_module_made_by_hand_under_our_name_is_named_too() -> None:
    done = run("import types\nsys.modules['planner'] = types.ModuleType('planner')\nimport rlm")
    assert "'planner' comes from \"sys.modules['planner']" in done.stderr


def test_our_name_in_our_folder_without_our_mark_is_an_intruder(tmp_path: Path) -> None:
    """Somebody else's package may be installed over ours, file by file."""
    for name in ("rlm", *_siblings.SIBLINGS):
        foreign(tmp_path, name, '__rlm_distribution__ = "rlm-recurse"\n')
    foreign(tmp_path, "planner", '__version__ = "2.0"\n')
    source = Path(_siblings.__file__).read_text(encoding="utf-8")
    (tmp_path / "rlm/_siblings.py").write_text(source, encoding="utf-8")
    done = run("from rlm import _siblings; print(*_siblings.find_intruders())", tmp_path)
    assert done.stdout.startswith(f"'planner' comes from {str(tmp_path / 'planner')!r}"[:-1])


def test_a_missing_sibling_is_said_to_be_missing(tmp_path: Path) -> None:
    foreign(tmp_path, "rlm", "")
    source = Path(_siblings.__file__).read_text(encoding="utf-8")
    (tmp_path / "rlm/_siblings.py").write_text(source, encoding="utf-8")
    code = f"""
    sys.path[:] = [folder for folder in sys.path if folder != {str(ROOT)!r}]
    from rlm import _siblings
    _siblings.require_siblings()
    """
    assert "'planner' is missing: expected in" in run(code, tmp_path).stderr


def test_our_own_packages_pass() -> None:
    assert list(_siblings.find_intruders()) == []
    assert run("import rlm; print(rlm.__version__)").returncode == 0
