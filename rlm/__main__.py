"""The program `rlm`, also as `python -m rlm`."""

import os
import signal
import sys

__all__ = ["main"]

_STOPPED = 130


def main() -> int:
    """Load the commands and run the command line of this process; returns the exit code."""
    # Nothing has begun before the commands are loaded: Ctrl-C then ends at once, and without the
    # traceback of an import. A shell may have set it to be ignored.
    answered = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if answered:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_STOPPED))
    from rlm.cli import main as run  # the import that this is about

    if answered:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
