"""A person at the terminal, asked as a channel of a gate asks."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import anyio

from executors.gate.harmless import harmless
from executors.gate.people.human import Approve, HumanEvent, Refuse, Reply, Terminate, TopUp

__all__ = ["terminal_human"]

_YES: Final = frozenset({"yes", "y", "approve", "approved"})
_END: Final = frozenset({"terminate", "stop"})
_LINE: Final = 1_000
"""Bytes of an answer; a longer one is none."""


def terminal_human(*, device: Path = Path("/dev/tty")) -> Callable[[HumanEvent], Awaitable[Reply]]:
    """Return a channel that asks on the terminal.

    Only yes, y, approve and approved, in any case, allow. What was typed before a question is no
    answer to it, and a question whose time is up leaves no thread behind. Where there is no
    terminal, or the process is in its background, the answer is no: what comes through a pipe is
    data, and no person.

    Args:
        device: the terminal; where it cannot be opened, standard input, if that is one.
    """

    async def ask(event: HumanEvent) -> Reply:
        with _opened(device) as terminal:
            if terminal is None:
                return Refuse(reason="there is no terminal to ask on")
            _tell(terminal, _asked(event))
            try:
                line = await _line(terminal)
            except BaseException:
                _tell(terminal, "\nNo answer came in time: denied.\n")
                raise
        return _answer(line, event)

    return ask


def _asked(event: HumanEvent) -> str:
    head = "The gate asks about an action:" if event.kind == "ask" else "The run is at a bound:"
    tier = "" if event.tier is None else f" (tier {event.tier} of 3)"
    lines = [
        "",
        head,
        f"  action  {event.shown}",
        f"  rule    {harmless(event.rule)}{tier}",
        f"  reason  {harmless(event.reason)}",
        f"  spent   {event.standing}",
        *(
            f"  noted   {harmless(f'{one.verdict} {one.reason} {one.where}')}"
            for one in event.annotations
        ),
        "Type yes to allow this one action, raise CAP for a higher bound, terminate to end the run."
        if event.kind == "halt"
        else "Type yes to allow it, terminate to end the run; anything else denies.",
        "> ",
    ]
    return "\n".join(lines)


def _answer(line: str | None, event: HumanEvent) -> Reply:
    if line is None:
        return Refuse(reason="no answer came")
    words = line.strip().lower().split()
    match words:
        case [word] if word in _YES:
            return Approve()
        case [word] if word in _END:
            return Terminate()
        case ["raise", cap] if event.kind == "halt":
            return TopUp(cap=_number(cap))
        case _:
            return Refuse()


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None


@contextmanager
def _opened(device: Path) -> Generator[int | None]:
    """Open the terminal, with nothing in it that was typed before."""
    try:
        terminal = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield 0 if _is_ready(0) else None
        return
    try:
        yield terminal if _is_ready(terminal) else None
    finally:
        os.close(terminal)


def _is_ready(terminal: int) -> bool:
    """Forget what stands in line, the late answer to a question before; whether it can be read."""
    import termios  # of POSIX alone

    try:
        termios.tcflush(terminal, termios.TCIFLUSH)
    except termios.error:
        return False
    with suppress(OSError):  # a terminal without job control
        # Reading in the background would stop the whole process.
        return os.tcgetpgrp(terminal) == os.getpgrp()
    return True


def _tell(terminal: int, text: str) -> None:
    left = text.encode("utf-8", "backslashreplace")
    while left:
        left = left[os.write(terminal, left) :]


async def _line(terminal: int) -> str | None:
    """Return the next line; None at the end of the input, and where a line has no end."""
    read = b""
    while b"\n" not in read:
        await anyio.wait_readable(terminal)
        more = os.read(terminal, _LINE)
        if not more or len(read) > _LINE:
            return None
        read += more
    return read.partition(b"\n")[0].decode("utf-8", "replace")
