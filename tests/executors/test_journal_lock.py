"""The lock of a run directory, and the file systems on which no run can lie."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from executors.errors import RunDirError
from executors.journal.filesystems import file_system, is_remote, refuse_remote
from executors.journal.lock import RunLock

HOLD = """
import sys
from pathlib import Path
from executors.journal.lock import RunLock
RunLock(Path(sys.argv[1])).take()
print("held", flush=True)
sys.stdin.read()
"""


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def written(host: str, pid: int, started: str) -> str:
    return json.dumps({"host": host, "pid": pid, "started": started})


def test_two_in_one_process_never_share(tmp_path: Path) -> None:
    first, second = RunLock(tmp_path), RunLock(tmp_path / "." / "")
    first.take()
    with pytest.raises(RunDirError, match=f"is in use\nheld by process {os.getpid()} on .+\nwait"):
        second.take()
    first.release()
    second.take()
    first.release()
    with pytest.raises(RunDirError):
        first.take()
    second.release()


def test_two_in_one_process_never_share_where_locks_are_kept_by_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grant(fd: int, operation: int) -> None:
        pass

    monkeypatch.setattr(fcntl, "flock", grant)
    first = RunLock(tmp_path)
    first.take()
    with pytest.raises(RunDirError, match="is in use"):
        RunLock(tmp_path).take()
    first.release()


def test_a_live_process_is_named_and_a_dead_one_is_succeeded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(RunDirError, match=f"held by process {child.pid} on"):
            RunLock(tmp_path).take()
        child.kill()
    lock = RunLock(tmp_path)
    lock.take()
    assert json.loads((tmp_path / "lock").read_text(encoding="utf-8"))["pid"] == os.getpid()
    lock.release()


FORK = """
import os, signal, sys
from pathlib import Path
from executors.journal.lock import RunLock
RunLock(Path(sys.argv[1])).take()
if os.fork():
    os.read(int(sys.argv[2]), 1)
    os.kill(os.getpid(), signal.SIGKILL)
print("forked", flush=True)
sys.stdin.read()
"""


def test_a_child_that_outlives_its_parent_holds_nothing(tmp_path: Path) -> None:
    end, tell = os.pipe()
    command = [sys.executable, "-c", FORK, str(tmp_path), str(end)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[end]
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"forked\n"
        os.write(tell, b"!")
        parent.wait()
        lock = RunLock(tmp_path)
        lock.take()
        lock.release()
        parent.stdin.close()
    os.close(end)
    os.close(tell)


@pytest.mark.parametrize("text", ["", "garbage", "[1]", '{"host": 1}', '{"host": "x", "pid": "1"}'])
def test_what_nobody_can_read_holds_nothing(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    (tmp_path / "lock").write_text(text, encoding="utf-8")
    lock = RunLock(tmp_path)
    lock.take()
    lock.release()


def test_without_the_systems_locks_what_is_written_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    lock, file = RunLock(tmp_path), tmp_path / "lock"
    file.write_text(written("elsewhere", 1, ""), encoding="utf-8")
    with pytest.raises(RunDirError, match=r"held by process 1 on elsewhere\n.*delete '.*lock'"):
        lock.take()
    file.unlink()
    lock.take()
    mine = json.loads(file.read_text(encoding="utf-8"))
    lock.release()
    file.write_text(json.dumps({**mine, "started": "before-1"}), encoding="utf-8")
    lock.take()  # the number is that of a later process
    lock.release()
    file.write_text(json.dumps(mine), encoding="utf-8")
    with pytest.raises(RunDirError, match="is in use"):
        lock.take()


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match=r"cannot be locked.*\n.*lock\n.*--run"):
        RunLock(tmp_path / "missing").take()


# ---------------------------------------------------------------- file systems

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /data rw shared:7 - nfs4 server:/data rw,vers=4.2
31 30 254:1 / /data/local rw - xfs /dev/vdb rw
32 22 0:41 / /my\040files rw - fuse.sshfs me@there: rw
33 22 0:42 / /win rw - 9p C:\134 rw
34 22 0:43 / /win rw - ext4 /dev/vdc rw
half a line
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/tmp/run", "ext4", False),
        ("/data/run", "nfs4", True),
        ("/database", "ext4", False),
        ("/data/local/run", "xfs", False),
        ("/my files/run", "fuse.sshfs", True),
        ("/win/run", "ext4", False),
    ],
)
def test_the_longest_mount_decides(path: str, kind: str, remote: bool) -> None:
    assert file_system(Path(path), MOUNTS) == kind
    assert is_remote(kind) is remote


@pytest.mark.parametrize("kind", ["nfs", "cifs", "smb3", "lustre", "ceph", "beegfs", "fuse.s3fs"])
def test_file_systems_of_other_machines_are_known(kind: str) -> None:
    assert is_remote(kind)


@pytest.mark.case("S42")
def test_a_run_on_a_network_file_system_is_refused_with_the_remedy() -> None:
    with pytest.raises(RunDirError, match=r"'/data/run'.*\(nfs4\)\n.*SQLite.*\n.*--run"):
        refuse_remote(Path("/data/run"), MOUNTS)


def test_here_is_local(tmp_path: Path) -> None:
    refuse_remote(tmp_path)
    refuse_remote(tmp_path, "")
