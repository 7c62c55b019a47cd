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
    from types import FrameType
else:
    import _signal as signal

__all__ = ["STOPPED", "is_answered", "release"]

STOPPED = 130


def _end(_number: int, _frame: object) -> None:
    os._exit(STOPPED)


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


def is_answered() -> bool:
    """Whether Ctrl-C ends the program here, or does what Python does by itself."""
    return signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler)


def release() -> None:
    """Give Ctrl-C back once the package is loaded, unless the program itself comes next."""
    if signal.getsignal(signal.SIGINT) is _end and not _leads_to_main():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leads_to_main() -> bool:
    """Whether the package is loaded for the sake of `rlm.__main__`, which takes Ctrl-C over."""
    if sys.orig_argv[1:3] == ["-m", "rlm"]:
        return True
    # Whoever imports a module of a package imports the package first, and waits for it.
    waiting = _here()
    while waiting is not None:
        name = waiting.f_code.co_name
        if name == "_find_and_load_unlocked" and waiting.f_locals.get("name") == "rlm.__main__":
            return True
        waiting = waiting.f_back
    return False


def _here() -> "FrameType | None":
    """Return the frame of this call: `inspect`, which tells it, takes time to load."""
    try:
        raise LookupError
    except LookupError as error:
        return error.__traceback__ and error.__traceback__.tb_frame


_guard()
