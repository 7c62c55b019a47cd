"""A handle on one child process that runs llama.cpp: started when first asked, killed to cancel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from executors.models.local.backends import EngineRefusal, EngineSetup
from executors.secrets import scrub

__all__ = ["CHILD", "LlamaWorker", "Ticket", "Worker", "WorkerDied"]

CHILD: Final = (sys.executable, "-P", "-m", "executors.models.local.child")

# Keys live in the environment; native code of others gets none of it but what a process needs.
_PASSED_ON: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")
_PATIENCE: Final = 5.0  # seconds that a child which was told to end may take
_LOG_TAIL: Final = 400

Fields = Mapping[str, Any]


class WorkerDied(Exception):
    """The child ended without an answer: it crashed, or it was killed."""


class Ticket:
    """One question on its way; `LlamaWorker.kill` takes it back."""

    def __init__(self) -> None:
        self.void = False


class Worker(Protocol):
    """What a local model needs of a worker. `kill` may come from another thread, at any time."""

    def ask(self, question: Fields, ticket: Ticket) -> Fields: ...
    def kill(self, ticket: Ticket) -> None: ...
    def close(self) -> None: ...


class LlamaWorker:
    """Asks one child, one question at a time; a second thread waits for its turn.

    A child that died is started anew by the next question.
    """

    def __init__(self, setup: EngineSetup, *, command: Sequence[str] = CHILD) -> None:
        self._setup = setup
        self._command = command
        self._turn = threading.Lock()
        # Guards `_child` and `_asking` between the asking thread and one that kills.
        self._state = threading.Lock()
        self._child: _Child | None = None
        self._asking: Ticket | None = None

    def ask(self, question: Fields, ticket: Ticket) -> Fields:
        """Return the child's reply. Blocks.

        Raises:
            EngineRefusal: the back end said no.
            WorkerDied: the child ended, or the ticket was taken back.
        """
        with self._turn:
            try:
                child = self._begin(ticket)
                reply = child.exchange(question)
            except WorkerDied:
                self._drop()
                raise
            finally:
                with self._state:
                    self._asking = None
        return _unless_refused(reply)

    def _begin(self, ticket: Ticket) -> _Child:
        with self._state:
            if ticket.void:
                raise WorkerDied("it was cancelled before it began")
            self._asking = ticket
            child = self._child
            if child is not None and child.alive:
                return child
            if child is not None:
                child.end()  # it died while nobody asked
            child = self._child = _Child(self._command, self._setup.threads)
        self._greet(child)
        return child

    def _greet(self, child: _Child) -> None:
        try:
            _unless_refused(child.exchange(asdict(self._setup)))
        except EngineRefusal:
            self._drop()
            raise

    def kill(self, ticket: Ticket) -> None:
        """Take a question back: if the child works on it, the child ends at once."""
        with self._state:
            ticket.void = True
            if self._asking is ticket and self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """End the child and let go of the weights; a question in flight dies. Bounded."""
        with self._state:
            if self._asking is not None:
                self._asking.void = True
                if self._child is not None:
                    self._child.kill()
        with self._turn:
            self._drop()

    def _drop(self) -> None:
        with self._state:
            child, self._child = self._child, None
        if child is not None:
            child.end()


class _Child:
    def __init__(self, command: Sequence[str], threads: int) -> None:
        # Its own, for its socket; mode 0700.
        self._folder = tempfile.TemporaryDirectory(prefix="rlm-", ignore_cleanup_errors=True)
        # A file, not a pipe: nobody has to empty it.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, our own interpreter
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=self._folder.name,
                env=_environment(threads),
                start_new_session=True,  # Ctrl-C is for the parent, which then ends the child
            )
        except OSError as error:
            self._clean()
            raise WorkerDied(f"its process cannot be started: {error}") from error

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def exchange(self, question: Fields) -> Fields:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        line = b""
        with suppress(OSError):  # a broken pipe is told apart below, by the missing answer
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        if not line.endswith(b"\n"):
            raise WorkerDied(self._obituary())
        return cast(Fields, json.loads(line))

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Close its input, which ends it; kill it when that takes too long."""
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._clean()

    def _clean(self) -> None:
        self._log.close()
        self._folder.cleanup()

    def _obituary(self) -> str:
        self._process.kill()
        status = self._process.wait()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_TAIL))
        tail = scrub(self._log.read().decode("utf-8", "replace")).strip()
        return f"its process ended {how}" + (f": {tail}" if tail else "")


def _unless_refused(reply: Fields) -> Fields:
    if "refusal" in reply:
        raise EngineRefusal(reply["refusal"], str(reply["what"]))
    return reply


def _environment(threads: int) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # The child has to find this very package, wherever it was imported from.
    home = str(Path(__file__).parents[3])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**passed, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(threads)}
