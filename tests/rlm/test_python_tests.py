"""Code on trial: what it is told when it fails, and what it cannot do while it runs."""

import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import anyio
import pytest

from executors.errors import ConfigError, ValidationError
from rlm.checks.arbiters import Broken, run_arbiter
from rlm.checks.sensors import SensorContext, python_tests
from rlm.checks.sensors.confining import can_confine
from rlm.checks.sensors.trial import Isolation
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict, read_verdict

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not can_confine(), reason="this system offers no isolation"),
]
ROOT = Path(__file__).resolve().parents[2]
TESTS = """\
from solution import add
def test_small():
    assert add(1, 2) == 3
def test_negative():
    assert add(-1, 1) == 0
"""
PASSES = "def add(a, b):\n    return a + b\n"


async def tried(
    result: str, tests: str = TESTS, *, isolation: Isolation = "strict", seconds: float = 20.0
) -> Verdict | Broken:
    sensor = python_tests(tests, isolation=isolation, seconds=seconds)
    return await run_arbiter(
        sensor, result, SensorContext(task="t"), read=read_verdict, kind="broken-sensor"
    )


async def critique(result: str, tests: str = TESTS, *, seconds: float = 20.0) -> str:
    found = await tried(result, tests, seconds=seconds)
    assert isinstance(found, NeedsRevision), found
    return found.critique


# ---------------------------------------------------------------- verdicts


async def test_code_that_passes_says_how_many_tests_ran_and_how_it_was_confined() -> None:
    found = await tried(f"Here it is:\n```python\n{PASSES}```\nIt adds.")
    assert isinstance(found, Satisfied)
    assert found.extra["ran"] == 2
    assert {"network", "processes"} <= set(found.extra["confined"])  # type: ignore[call-overload]
    assert (await tried(PASSES, isolation="none")) == Satisfied(extra={"ran": 2, "confined": ()})


async def test_code_of_several_fences_is_put_together_and_other_languages_are_left_out() -> None:
    parts = "```py\ndef one():\n    return 1\n```\nand\n```\ndef add(a, b):\n    return a + b * one()\n```"
    found = await tried(f"<think>```python\n1/0\n```</think>\n{parts}\n```bash\nrm -r x\n```")
    assert isinstance(found, Satisfied)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (PASSES.replace("+", "-"), "2 of 2 test(s) failed:\n- test_small: AssertionError (in: "),
        (PASSES.replace("a + b", "abs(a) + b"), "- test_negative: AssertionError (in: assert add("),
        ("def add(a):\n    return a", "TypeError: add() takes 1 positional argument"),
        ("def add(a, b)", "- loading the solution: "),
        ("x = 1", "cannot import name 'add' from 'solution'"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os\nos._exit(0)", "did not come to their end: their process ended itself"),
        ("import ctypes\nctypes.string_at(0)", "ended by SIGSEGV"),
        ("x = bytearray(3 << 30)", "MemoryError"),
        ("", "cannot import name 'add'"),
    ],
)
async def test_code_that_fails_is_told_why(code: str, told: str) -> None:
    assert told in await critique(code)


async def test_code_without_end_is_ended() -> None:
    for code in ("while True: pass", "import time; time.sleep(60)"):
        assert await critique(code, seconds=0.2) == "the tests did not end within 0.2 s"


async def test_tests_are_functions_coroutines_classes_or_bare_asserts() -> None:
    kinds = {
        "import solution\nasync def test_it():\n    assert solution.add(1, 1) == 2": "test_it",
        "import unittest, solution\nclass Adds(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(solution.add(1, 1), 2)": "tests.Adds.test_it",
        "from solution import add\nassert add(1, 1) == 2": "loading the tests",
    }
    for tests, name in kinds.items():
        assert isinstance(await tried(PASSES, tests), Satisfied)
        assert f"- {name}: AssertionError" in await critique(PASSES.replace("+", "-"), tests)


@pytest.mark.parametrize(
    "tests",
    ["def test_(: pass", "import no_such_module", "from os import no_such_name", "undefined"],
)
async def test_tests_that_cannot_be_loaded_are_no_fault_of_the_code(tests: str) -> None:
    found = await tried(PASSES, tests)
    assert isinstance(found, Broken)
    assert found.detail.startswith("the tests cannot be loaded: ")


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("x = 1", "there is no function named test"),
        ("import solution", "there is no function named test"),
        ("# assert add(1, 1) == 3", "there is no function named test"),
        ("def check():\n    assert False", "there is no function named test"),
        ("def test_it():\n    yield\n    assert False", "test_it yields"),
        ("async def test_it():\n    yield\n    assert False", "test_it yields"),
        ("def test_it(tmp_path, n=1, *more):\n    assert False", "test_it wants tmp_path,"),
    ],
)
async def test_tests_that_nothing_can_fail_pass_nothing(tests: str, why: str) -> None:
    found = await tried(PASSES, tests)
    assert isinstance(found, Broken)
    assert found.detail.startswith(f"the tests test nothing: {why}")


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_test_may_say_false(kind: str) -> None:
    tests = f"import solution\n{kind} test_it(): return solution.add(1, 1) == 2"
    assert isinstance(await tried(PASSES, tests), Satisfied)
    assert "- test_it: AssertionError: it returned False" in await critique(
        PASSES.replace("+", "-"), tests
    )


async def test_a_call_of_its_own_may_be_a_test() -> None:
    tests = "import solution\ndef check():\n    assert solution.add(1, 1) == 2\ncheck()"
    assert isinstance(await tried(PASSES, tests), Satisfied)


# ---------------------------------------------------------------- confinement


DEEDS = """\
import socket; socket.socket()
import socket; socket.socket(socket.AF_UNIX)
import os; os.fork()
import os; os.execv('/bin/true', ['true'])
import subprocess; subprocess.run(['true'])
import multiprocessing as m; m.get_context('fork').Process(target=print).start()
import os; os.kill(os.getppid(), 0)
import os; os.kill(-1, 0)
import os; os.setsid()
import os; os.setpgid(0, 0)
import signal; signal.pidfd_send_signal(0, 0)
import resource; resource.prlimit(1, resource.RLIMIT_CORE)
import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))
"""


async def test_code_on_trial_cannot_reach_out() -> None:
    """Each deed by itself is refused; one that is not would be named."""
    code = f"""\
done = []
for deed in {DEEDS.splitlines()!r}:
    try:
        exec(deed)
    except (PermissionError, ValueError):
        continue
    done.append(deed)
assert not done, done
{PASSES}"""
    assert isinstance(await tried(code), Satisfied)


async def test_code_on_trial_sees_no_variables_and_no_files_but_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    (tmp_path / "secret.txt").write_text("hunter2", encoding="utf-8")
    env = await critique("import os; raise ValueError(sorted(os.environ))")
    assert "['HOME', 'LANG', 'PATH', 'TMPDIR']" in env or "'LC_CTYPE'" in env
    found = await tried(PASSES)
    assert isinstance(found, Satisfied)
    if "files" not in found.extra["confined"]:  # type: ignore[operator]
        pytest.skip("this kernel has no Landlock")
    for deed in (
        f"open({str(tmp_path / 'secret.txt')!r}).read()",
        f"open({str(tmp_path / 'new')!r}, 'w')",
        "open('/proc/1/environ', 'rb').read()",
        f"import os; os.listdir({str(tmp_path)!r})",
        f"import os; os.unlink({str(tmp_path / 'secret.txt')!r})",
    ):
        assert "PermissionError" in await critique(deed)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.txt"]


async def test_code_on_trial_has_a_folder_threads_and_a_loop_of_its_own() -> None:
    code = f"""\
import asyncio, json, pathlib, threading
pathlib.Path("mine").write_text("1")
assert pathlib.Path("mine").read_text() == "1"
threading.Thread(target=print).start()
async def one(): return 1
assert asyncio.run(one()) == 1
print("printed to nobody")
{PASSES}"""
    assert isinstance(await tried(code), Satisfied)


async def test_threads_that_it_started_are_not_waited_for() -> None:
    code = f"import threading\nthreading.Thread(target=threading.Event().wait).start()\n{PASSES}"
    assert isinstance(await tried(code, seconds=5.0), Satisfied)


async def test_nothing_of_it_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await tried(PASSES)
    await critique("open('big', 'w').write('x'); while True: pass".replace("; ", "\n"), seconds=0.2)
    with anyio.move_on_after(0.3) as scope:
        await tried("import time\ntime.sleep(60)")
    assert scope.cancelled_caught
    assert list(tmp_path.iterdir()) == []


async def test_without_isolation_its_children_are_ended_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"""\
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(pid)!r}).write_text(str(child.pid))
{PASSES}"""
    assert isinstance(await tried(code, isolation="none"), Satisfied)
    child = Path("/proc", pid.read_text(encoding="utf-8"), "stat")
    with anyio.fail_after(20), suppress(FileNotFoundError):
        while child.read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z":  # until reaped
            await anyio.sleep(0.01)


KILLED = """\
import anyio, sys
from rlm.checks.sensors import SensorContext, python_tests
sense = python_tests("import solution", isolation="none", seconds=60)
anyio.run(sense, sys.argv[1], SensorContext(task="t"))
"""


def test_when_we_are_killed_it_is_as_well(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    with Popen([sys.executable, "-c", KILLED, code], cwd=ROOT, env={"TMPDIR": str(tmp_path)}) as us:
        while not (pid.exists() and pid.read_text(encoding="utf-8")):
            time.sleep(0.01)
        us.kill()
    child = Path("/proc", pid.read_text(encoding="utf-8"), "stat")
    with suppress(FileNotFoundError):
        while child.read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z":
            time.sleep(0.01)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tests": " "}, "tests=' '"),
        ({"tests": None}, "tests=None"),
        ({"isolation": "docker"}, "isolation='docker'"),
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": "10"}, "seconds='10'"),
        ({"seconds": True}, "seconds=True"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"memory": 1}, "memory=1"),
        ({"memory": "1g"}, "memory='1g'"),
        ({"memory": 1.5e9}, "memory=1500000000.0"),
    ],
)
async def test_options_that_are_none_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        python_tests(**({"tests": TESTS} | options))  # type: ignore[arg-type]


async def test_where_nothing_isolates_it_refuses_unless_that_is_waived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ConfigError, match=r"darwin\nrlm\.python_tests\n.*isolation='none'"):
        python_tests(TESTS)
    python_tests(TESTS, isolation="none")


async def test_where_the_kernel_refuses_to_isolate_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ROOT / "rlm/checks/sensors/child.py"
    (tmp_path / "child.py").write_bytes(child.read_bytes())
    (tmp_path / "confining.py").write_text(
        "def bound(**_): pass\ndef confine(folder): return []\n", encoding="utf-8"
    )
    monkeypatch.setattr("rlm.checks.sensors.trial._CHILD", tmp_path / "child.py")
    ran = tmp_path / "ran"
    found = await tried(f"open({str(ran)!r}, 'w').close()\n{PASSES}")
    assert isinstance(found, Broken)
    assert "did not let the tests be isolated" in found.detail
    assert found.detail.endswith("waive it: python_tests(…, isolation='none')")
    assert not ran.exists()
