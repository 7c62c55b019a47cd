"""Who answers a gate's questions at the command line: whoever sits at the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.options.gates import Human

__all__ = ["gate_human"]


def gate_human() -> Human | None:
    """Return the person at the terminal; None where nobody can be asked, so that an ask is a deny."""
    streams = (sys.stdin, sys.stderr)  # None where they were closed
    if any(stream is None or stream.closed or not stream.isatty() for stream in streams):
        return None
    from executors.gate.people.terminal import terminal_human  # for those at a terminal

    return terminal_human()
