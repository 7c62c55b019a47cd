"""Exit codes, and which one an error stands for."""

from __future__ import annotations

from enum import IntEnum
from typing import assert_never

from executors.errors import Halted, ReplayMiss, RlmError

__all__ = ["Exit", "exit_of"]


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    """Verified, or nothing to verify."""
    OUR_FAULT = 1
    USAGE = 2
    NOT_SATISFIED = 3
    INCOMPLETE = 4
    STOPPED = 130
    """A second Ctrl-C, or a first one before anything was paid for."""
    PIPE_CLOSED = 141
    """The reader of our output went away, as `head` does."""


def exit_of(error: RlmError) -> Exit:
    """Return the code by whose fault it is; a bound or the world leaves the work incomplete.

    A replay that misses is wrong use: nothing was spent, another try ends the same, and what has to
    change is what was asked for.
    """
    if isinstance(error, ReplayMiss):
        return Exit.USAGE
    if isinstance(error, Halted):
        return Exit.INCOMPLETE
    match error.fault:
        case "yours":
            return Exit.USAGE
        case "world":
            return Exit.INCOMPLETE
        case "ours":
            return Exit.OUR_FAULT
        case _:
            assert_never(error.fault)
