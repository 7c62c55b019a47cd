"""Progress: how far, how fast, how long still, what is unresolved and what it has cost.

On a terminal one line is repainted; elsewhere a plain line is written every few seconds and one
when all is done. A terminal has one bottom line: the first display has it, those that come beside
or inside it write plain lines above. Whoever runs the work reports numbers with `update` and runs `ticking` beside it,
so that a line comes out even while every call is slow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from decimal import Decimal
from threading import RLock
from types import TracebackType
from typing import Self, TextIO

from executors.clock import Clock, SystemClock
from rlm.render.lines import is_fancy
from rlm.render.safe import plain

__all__ = ["Progress", "Standing", "describe", "duration", "say"]

_LIVE_EVERY = 0.1
_PLAIN_EVERY = 5.0
_ERASE = "\r\x1b[2K"
_WHAT_WIDTH = 100

# Held for each write, since runs may be shown from several threads; by one thread also within.
_writing = RLock()
_live: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a piece of work stands."""

    done: int = 0
    total: int | None = None
    """None: not known yet."""
    unresolved: int | None = 0
    """None where nothing can stay unresolved."""
    calls: int = 0
    """Calls that were answered and are paid for."""
    failed: int = 0
    """Calls without an answer, whatever they may have cost."""
    cost: Decimal | None = Decimal(0)
    """USD so far over the priced calls; None when no call has a price."""
    unit: str = "records"
    """What is counted, in the plural."""
    note: str = ""


class Progress:
    """Shows how one piece of work stands; a context manager that always writes a last line.

    Args:
        what: what is going on, for people: "judging"; may hold names from outside.
        live: repaint one line; None asks the stream.
    """

    def __init__(
        self,
        what: str,
        *,
        stream: TextIO,
        clock: Clock | None = None,
        live: bool | None = None,
    ) -> None:
        self._what = plain(what, _WHAT_WIDTH)
        self._stream = stream
        self._clock = clock or SystemClock()
        self._wants_live = is_fancy(stream) if live is None else live
        self._standing = Standing()
        self._started = self._shown_at = self._clock.monotonic()
        self._shown = ""

    @property
    def standing(self) -> Standing:
        """What was reported last."""
        return self._standing

    def __enter__(self) -> Self:
        global _live
        with _writing:
            if self._wants_live and _live is None:
                _live = self
        self._started = self._shown_at = self._clock.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _live
        with _writing:
            try:
                self._show(ended=True, broken=error is not None)
            finally:
                if _live is self:
                    _live = None

    def update(self, standing: Standing) -> None:
        """Take new numbers; cheap enough to be called for every record."""
        self._standing = standing
        self.tick()

    def add(self, done: int, *, unresolved: int = 0) -> None:
        """Count some more as done."""
        now = self._standing
        left = None if now.unresolved is None else now.unresolved + unresolved
        self.update(replace(now, done=now.done + done, unresolved=left))

    def tick(self) -> None:
        """Show the numbers if it is time to."""
        now = self._clock.monotonic()
        # Plain lines stay: the longer a run takes, the fewer of them in the same time.
        every = _LIVE_EVERY if _live is self else max(_PLAIN_EVERY, (now - self._started) / 4)
        if now - self._shown_at >= every:
            self._show()

    async def ticking(self) -> None:
        """Tick until cancelled: slow calls are no reason for silence."""
        while True:
            await self._clock.sleep(1.0)
            self.tick()

    def say(self, message: str) -> None:
        """Write a line of its own, above the live one."""
        say(message, self._stream)

    def shows_on(self, stream: TextIO) -> bool:
        """Whether a line that is written to a stream would run into this one."""
        return stream is self._stream

    def line_above(self, text: str) -> None:
        """Write a line and paint the live one below it again."""
        erase = _ERASE if self._shown else ""
        self._stream.write(f"{erase}{text}\n{self._shown}")

    def _show(self, *, ended: bool = False, broken: bool = False) -> None:
        with _writing:
            self._shown_at = self._clock.monotonic()
            live = _live is self
            # One line has to hold the figures too: its first word, "judge" or "read", says enough.
            what = self._what.partition(" ")[0] if live and not ended else self._what
            text = describe(what, self._standing, self._shown_at - self._started, ended=ended)
            if broken:
                text += ", stopped"
            if not live:
                _write_line(text, self._stream)
                return
            self._shown = "" if ended else plain(text, _columns(self._stream) - 1)
            self._stream.write(_ERASE + (text + "\n" if ended else self._shown))
            self._stream.flush()


def say(message: str, stream: TextIO) -> None:
    """Write a line, above the live one if the stream shows one."""
    _write_line(plain(message), stream)


def _write_line(text: str, stream: TextIO) -> None:
    with _writing:
        if _live is not None and _live.shows_on(stream):
            _live.line_above(text)
        else:
            stream.write(text + "\n")
        stream.flush()


def describe(what: str, standing: Standing, seconds: float, *, ended: bool = False) -> str:
    """Return one line: `judging 1,200 of 6,046 records (19 %), 113/s, 43 s left, …`.

    Work that counts nothing has its time alone: `reading, 12 s`.
    """
    done, total, unit = standing.done, standing.total, standing.unit
    if total is None and not done:
        return ", ".join([what, duration(seconds), *_note(standing)])
    parts = [f"{what} {done:,}" + (f" of {total:,} {unit}" if total is not None else f" {unit}")]
    if total:
        # Rounded down: 100 % is said of what is really done.
        parts[0] += f" ({done * 100 // total} %)"
    rate = done / seconds if seconds > 0 else 0.0
    if rate:
        parts.append(f"{_rate(rate)}/s")
    if ended:
        parts.append(duration(seconds))
    elif rate and total is not None and seconds >= 1:
        parts.append(f"{duration((total - done) / rate)} left")
    if standing.unresolved is not None:
        parts.append(f"{standing.unresolved:,} unresolved")
    if standing.calls:
        cost = standing.cost
        priced = "price unknown" if cost is None else f"{cost:.4f} USD"
        parts += [f"{standing.calls:,} call{'s' if standing.calls != 1 else ''}", priced]
    if standing.failed:
        parts.append(f"{standing.failed:,} failed")
    return ", ".join([*parts, *_note(standing)])


def _note(standing: Standing) -> list[str]:
    return [plain(standing.note, 60)] if standing.note else []


def duration(seconds: float) -> str:
    """Return a duration for people: `0.4 s`, `43 s`, `12 min 5 s`, `24 h`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    big, small = (f"{hours} h", f"{minutes} min") if hours else (f"{minutes} min", f"{rest} s")
    return big if small.startswith("0 ") else f"{big} {small}"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _columns(stream: TextIO) -> int:
    try:  # a stream without a descriptor has no size
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
