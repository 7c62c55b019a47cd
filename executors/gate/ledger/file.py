"""The ledger's file: one SQLite database a run family, on a local disk, never over a network.

Each change is one `BEGIN IMMEDIATE` transaction, so that nobody else changes anything between what
is looked at and what is written. SQLite's locks are the system's: they fall with the process that
held them, however it died, and no stale lock is left to wait for. What a live process holds is
waited for `wait` seconds; then the answer is that nobody knows what may be spent, which lets
nothing through.

A file that is damaged when it is opened is kept aside and made again from the audit. One that is
damaged later, or replaced, stops the run and is left as it is.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final

from executors.errors import BudgetUnavailable, RunDirError
from executors.gate.ledger.header import Header
from executors.gate.ledger.schema import NotOurs, prepare
from executors.journal.filesystems import file_system, is_remote

__all__ = ["LedgerFile"]

_PAUSE: Final = 0.005
_ENDS: Final = ("", "-wal", "-shm", "-journal")
_FORSAKEN: Final[list[sqlite3.Connection]] = []
"""Connections of a parent process: closing them here would clear away what the parent still uses."""


class LedgerFile:
    """The open file; may be used in any thread, one transaction at a time.

    Args:
        path: the file; None for a ledger in memory, of this process alone.
        wait: seconds that another process's transaction is waited for.
        fill: writes the first totals into a file that is new, or made again. None where nobody
            knows them: a damaged file is refused then.

    Raises:
        RunDirError: the folder lies on a network file system, or cannot be written.
        BudgetUnavailable: the file is another program's, newer, locked, or damaged beyond help.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        wait: float,
        fill: Callable[[sqlite3.Connection], None] | None,
    ) -> None:
        self.path = path
        self._wait = wait
        self._fill = fill
        self._lock = RLock()
        self._process = os.getpid()
        self._header: Header | None = None
        if path is not None:
            _refuse_remote(path)
        with self._told():
            self._file = self._opened()

    def close(self) -> None:
        """Close the file; nothing happens where it is closed."""
        with self._lock, suppress(sqlite3.Error):
            if self._process == os.getpid():
                self._file.close()
                self._let_go()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Change the file, or raise and leave it as it was.

        Raises:
            BudgetUnavailable: it cannot be read or written.
        """
        with self._lock, self._told():
            file = self._current()
            with _begun(file, "IMMEDIATE"):
                yield file

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Look at one state of the file, without keeping anybody from changing it.

        Raises:
            BudgetUnavailable: it cannot be read.
        """
        with self._lock, self._told():
            file = self._current()
            with _begun(file, "DEFERRED"):
                yield file

    # ---------------------------------------------------------------- opening

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connected()
        except sqlite3.OperationalError:  # in use, or not to be reached: that is no damage
            raise
        except sqlite3.DatabaseError:
            if self.path is None or self._fill is None:
                raise
        with _alone(self.path):
            return self._mended(self.path)

    def _mended(self, path: Path) -> sqlite3.Connection:
        """Keep a damaged file aside and make it again, unless somebody else just did."""
        with suppress(sqlite3.DatabaseError):
            return self._connected()
        mark = time.time_ns()
        for end in _ENDS:
            with suppress(FileNotFoundError):
                old = path.with_name(path.name + end)
                old.rename(old.with_name(f"{old.name}.damaged-{mark}"))
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        file = _connect(self.path, self._wait)
        try:
            with _begun(file, "IMMEDIATE"):
                prepare(file, self._fill)
            _log_ahead(file, self._wait)
            # In order, or a loss of power could leave a page without those that it stands on.
            file.execute("PRAGMA synchronous = NORMAL")
            if self.path is not None:
                self._header = Header(self.path)
            return file
        except BaseException:
            file.close()
            raise

    # ---------------------------------------------------------------- trust

    def _current(self) -> sqlite3.Connection:
        """Return the connection, if the file is still the one that was opened."""
        if self.path is None:
            return self._file
        if self._process != os.getpid():
            # In a forked child: the connection is its parent's.
            _FORSAKEN.append(self._file)
            self._file, self._process = self._opened(), os.getpid()
        if self._header is not None and not self._header.is_intact():
            self._forsake(self.path)
        if self._header is None:
            raise _unavailable(self.path, "it is closed, or was damaged or replaced while in use")
        return self._file

    def _forsake(self, path: Path) -> None:
        """Close without writing: what the log still holds was meant for a file that is gone."""
        with suppress(OSError):
            os.truncate(path.with_name(path.name + "-wal"), 0)
        with suppress(sqlite3.Error):
            self._file.close()
        self._let_go()

    def _let_go(self) -> None:
        header, self._header = self._header, None
        if header is not None:
            header.close()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except (NotOurs, sqlite3.Error) as error:
            cause = _cause(error, self._wait)
            raise _unavailable(self.path, cause, busy=_is_busy(error)) from error
        except OSError as error:
            raise RunDirError(
                f"the ledger {str(self.path)!r} cannot be made: {error.strerror or error}",
                where="the file that keeps what a run family may spend",
                hint="name a directory on a local disk that you may write to",
            ) from error


def _connect(path: Path | None, wait: float) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)  # SQLite gives its side files the mode of the file
    name = ":memory:" if path is None else path
    return sqlite3.connect(name, timeout=wait, isolation_level=None, check_same_thread=False)


def _log_ahead(file: sqlite3.Connection, wait: float) -> None:
    """Write ahead. SQLite itself does not wait for others who do the same in that moment."""
    until = time.monotonic() + wait
    while True:
        try:
            file.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


@contextmanager
def _begun(file: sqlite3.Connection, how: str) -> Generator[None]:
    file.execute(f"BEGIN {how}")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")
        raise
    file.execute("COMMIT")


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Let one process at a time make a damaged file again; falls with the process."""
    import fcntl  # nobody else needs it

    fd = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _is_busy(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _cause(error: Exception, wait: float) -> str:
    match error:
        case _ if _is_busy(error):
            return f"another process has held it for {wait:g} s"
        case NotOurs() | sqlite3.OperationalError() | sqlite3.ProgrammingError():
            return str(error)
        case _:
            return f"it is damaged ({error})"


def _refuse_remote(path: Path) -> None:
    kind = file_system(path)
    if is_remote(kind):
        raise RunDirError(
            f"the ledger {str(path)!r} lies on a network file system ({kind})",
            where="it is an SQLite file, whose locks such a file system does not keep",
            hint="name a directory on a local disk: the processes of a run family share one machine",
        )


def _unavailable(path: Path | None, why: str, *, busy: bool = False) -> BudgetUnavailable:
    remedy = (
        "wait for that process, or end it"
        if busy
        else "move the file away to have it made again from the audit"
    )
    return BudgetUnavailable(
        f"the ledger of the run cannot be used: {why}",
        where=str(path or "in memory"),
        hint=f"nothing is spent meanwhile; {remedy}, then go on with: rlm resume DIR",
    )
