"""The program `rlm`, also as `python -m rlm`."""

import os
import signal
import sys

from rlm import _early

__all__ = ["main"]


def main() -> int:
    """Load the commands and run the command line of this process; returns the exit code."""
    # Nothing has begun before the commands are loaded: Ctrl-C then ends at once, and without the
    # traceback of an import. A shell may have set it to be ignored.
    answered = _early.is_answered()
    if answered:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_early.STOPPED))
    from rlm.cli import main as run  # the import that this is about

    try:
        if answered:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # between two lines that would have answered it
        return _early.STOPPED


if __name__ == "__main__":
    sys.exit(main())
