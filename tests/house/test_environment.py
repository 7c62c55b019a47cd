"""`tools/environment.py`: it says what the machine lacks, and does nothing when nothing changed."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/environment.py"


@pytest.fixture
def environment() -> ModuleType:
    spec = spec_from_file_location("environment", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_unknown_level_is_refused_with_the_choices() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "most"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "['most'] is not one of ['demo', 'full']" in done.stderr


def test_nothing_runs_when_the_stamp_is_of_the_same_locks(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "interpreter", lambda: sys.executable)
    monkeypatch.delattr(environment, "install")
    stamp = tmp_path / ".stamp-demo"
    stamp.write_text(environment.made_from("demo"), encoding="ascii")
    environment.make_environment("demo")


def test_another_lock_or_another_python_makes_another_stamp(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment.made_from("demo")
    changed = tmp_path / "demo.txt"
    changed.write_text("numpy==1.0\n", encoding="utf-8")
    monkeypatch.setitem(environment.STEPS, "demo", [changed])
    after = environment.made_from("demo")
    monkeypatch.setattr(sys, "version_info", (3, 99))
    assert len({before, after, environment.made_from("demo")}) == 3


def test_a_missing_compiler_is_said_before_anything_is_installed(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(environment.Missing, match=r"no C\+\+ compiler") as missing:
        environment.require_compiler()
    assert missing.value.args[1] == "apt-get install -y make python3-venv g++"
