"""Ctrl-C while the program `rlm` loads: it ends at once, without the traceback of an import.

To load this module is what does it, so the package loads it before anything else. It acts where
`rlm` is the program itself, and never where it is somebody's library. It loads nothing that takes
time: no `pathlib`, and of `signal` the built-in half.
"""

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes as long to load as what this is about
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = ["release"]

_STOPPED = 130


def _end(_number: int, _frame: object) -> None:
    os._exit(_STOPPED)


def _is_program() -> bool:
    if sys.argv[:1] == ["-m"]:  # so it is called until the module is found
        return sys.orig_argv[1:3] == ["-m", "rlm"]
    return sys.argv[:1] != [] and sys.argv[0].rpartition("/")[2] == "rlm"


def _guard() -> None:
    if _is_program() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:  # noqa: SIM105 - `contextlib` takes time to load
            signal.signal(signal.SIGINT, _end)
        except ValueError:
            pass  # a thread that loads us gets no signals


def release() -> None:
    """Give Ctrl-C back once the package is loaded."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_guard()
