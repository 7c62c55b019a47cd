"""The lock of a run directory: one coordinator at a time, and none that is dead.

The system's lock on the file `lock` decides, and falls with its holder. Who holds it is written in
the file, for the others' message; where a file system has no such locks, what is written decides.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

from executors.errors import RunDirError
from executors.journal.segment import host_name

__all__ = ["RunLock", "lock_holder"]

_NO_LOCKS: Final = frozenset(
    {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
)
# Locks of this process by path: some file systems keep them by process, and would let two share.
_held: dict[Path, int] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    host: str
    pid: int
    started: str
    """What tells a process from a later one of the same number; empty where the system is silent."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class RunLock:
    """Held from `take` to `release`, or to the end of the process; never by a forked child.

    Args:
        directory: the run directory, which exists.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory.resolve() / "lock"
        self._fd: int | None = None

    def take(self) -> None:
        """Take the lock, also of a holder that is dead.

        Raises:
            RunDirError: somebody holds it, or the directory cannot be written.
        """
        with _guard:
            if self._path in _held:
                raise self._refusal(_self())
            try:
                self._fd = _held[self._path] = self._taken()
            except OSError as error:
                raise RunDirError(
                    f"the run directory {str(self._path.parent)!r} cannot be locked:"
                    f" {error.strerror or error}",
                    where=str(self._path),
                    hint="name a run directory that you may write to with --run",
                ) from error

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        with _guard:
            fd, self._fd = self._fd, None
            if fd is None or _held.get(self._path) != fd:
                return
            del _held[self._path]
            with suppress(OSError):  # it only says that nobody holds it
                os.ftruncate(fd, 0)
            with suppress(OSError):  # closing would wait for children that were forked just now
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _taken(self) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            kept = _flock(fd)
            holder = _read(fd)
            if kept is False or (kept is None and holder is not None and _may_live(holder)):
                raise self._refusal(holder)
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(asdict(_self())).encode() + b"\n", 0)
            if kept is None and _read(fd) != _self():  # somebody took it in the same instant
                raise self._refusal(_read(fd))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _refusal(self, holder: _Holder | None) -> RunDirError:
        remedy = "wait until it ends, or end it"
        if holder is not None and holder.host != host_name():
            remedy += f"; if that machine is gone, delete {str(self._path)!r}"
        return RunDirError(
            f"the run directory {str(self._path.parent)!r} is in use",
            where=f"held by {holder or 'another process'}",
            hint=f"{remedy}; or name another directory with --run",
        )


def lock_holder(directory: Path) -> str | None:
    """Return who holds the lock of a run directory, in words; None for nobody, as far as is known.

    A look and no try: it disturbs nobody who takes the lock at the same moment.
    """
    try:
        fd = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        holder = _read(fd)
    finally:
        os.close(fd)
    return str(holder) if holder is not None and _may_live(holder) else None


def _flock(fd: int) -> bool | None:
    """Lock a file; False when somebody else did, None where the file system cannot."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _read(fd: int) -> _Holder | None:
    """Return who says to hold the lock; None for nobody, or what nobody can read."""
    try:
        fields = cast("dict[str, object]", json.loads(os.pread(fd, 4096, 0)))
        host, pid, started = fields["host"], fields["pid"], fields["started"]
    except (LookupError, TypeError, ValueError):
        return None
    if not (isinstance(host, str) and isinstance(pid, int) and isinstance(started, str)):
        return None
    return _Holder(host=host, pid=pid, started=started)


def _self() -> _Holder:
    return _Holder(host=host_name(), pid=os.getpid(), started=_started(os.getpid()) or "")


def _may_live(holder: _Holder) -> bool:
    """Say whether a holder may be alive; on another machine it always may."""
    if holder.host != host_name():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        pass
    started = _started(holder.pid)
    return not (started and holder.started) or started == holder.started


def _started(pid: int) -> str | None:
    """Return boot and tick at which a process began; None where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    ticks = status.rpartition(b")")[2].split()[19]  # the name may hold blanks and brackets
    return f"{boot[:8]}-{int(ticks)}"


def _let_go() -> None:
    """Close in a forked child what its parent holds: the lock falls with the parent alone."""
    for fd in _held.values():
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
