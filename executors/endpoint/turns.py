"""Who goes when: one line in front of an endpoint, for its slots, its limits and its pace.

Whoever waits sleeps until its turn has come: nobody polls, and each is woken alone. Where time is
what stands between, one of those who wait keeps it for all. Calls that were sent back come first,
so that nobody is refused time after time; but while a server keeps refusing, those who have tried
least find out whether it still does, so that nobody uses up its tries for the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from executors.clock import Clock
from executors.endpoint.buckets import Meter
from executors.endpoint.pacing import Pace
from executors.endpoint.slots import Slots
from executors.errors import Halted
from executors.gate.allowance import Allowance

__all__ = ["Turns"]

_INF = float("inf")
# A timekeeper that would wake up this much too late is left to sleep: seconds.
_EARLIER = 0.001


class Turns:
    """Lets calls go.

    Args:
        meter: known limits; None where there are none.
        allowance: whose deadline ends each wait; None knows no deadline.
    """

    def __init__(
        self,
        slots: Slots,
        pace: Pace,
        clock: Clock,
        *,
        meter: Meter | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self._slots = slots
        self._pace = pace
        self._clock = clock
        self._allowance = allowance
        self.meter = meter
        self._again: deque[_Waiter] = deque()
        self._fresh: deque[_Waiter] = deque()
        self._keeper: _Waiter | None = None
        """Who sleeps for all."""

    @property
    def waiting(self) -> bool:
        """Whether anybody does."""
        return bool(self._fresh or self._again)

    def fewest(self, tries: int) -> int:
        """Return the tries of who has tried least among those who wait and one more."""
        return 0 if self._fresh else min([tries, *(waiter.tries for waiter in self._again)])

    def go(self, now: float) -> bool:
        """Take a slot if nothing at all stands between; most calls spend no more here."""
        slots, pace = self._slots, self._pace
        if slots.taken >= slots.width or pace.bound or self.meter is not None or self.waiting:
            return False
        slots.taken += 1
        pace.leave(now)
        return True

    async def take(self, tokens: int, *, tries: int = 0, until: float = _INF) -> bool:
        """Wait for the turn of a call; False when it comes too late for another try.

        Args:
            tries: how often this call was sent before.
            until: the time after which it must not be sent again.

        Raises:
            Halted: the run's deadline came first, or everybody was sent away.
        """
        mine = _Waiter(tokens, tries, until)
        (self._again if tries else self._fresh).append(mine)
        self.serve()
        if not mine.over:
            await self._wait(mine)
            self._check_time(mine)
        if mine.error is not None:
            raise mine.error
        return mine.granted

    def give(self) -> None:
        """Give a slot back."""
        self._slots.taken -= 1
        self.serve()

    def dismiss(self, why: Callable[[], Halted] | None = None) -> None:
        """Send away those who can no longer be sent in time; everybody, where there is a reason."""
        for line in (self._again, self._fresh):
            for waiter in tuple(line):
                if why is not None:
                    waiter.error = why()
                elif waiter.until >= self._pace.closed_until:
                    continue
                line.remove(waiter)
                waiter.end()

    def serve(self) -> None:
        """Let go who may; see to it that somebody keeps the time where time is what stands between."""
        slots = self._slots
        while (self._fresh or self._again) and slots.taken < slots.width:
            now = self._clock.monotonic()
            head = self._head()
            seconds = self._pace.wait(now)
            if self.meter is not None:
                seconds = max(seconds, self.meter.wait(head.tokens, now))
            if seconds > 0:
                self._appoint(head, now + seconds)
                return
            self._remove(head)
            self._leave(head, now)

    def _leave(self, head: _Waiter, now: float) -> None:
        self._slots.taken += 1
        self._pace.leave(now)
        if self.meter is not None:
            self.meter.take(head.tokens, now)
        head.granted = True
        head.end()

    def _head(self) -> _Waiter:
        if not self._again:
            return self._fresh[0]
        if self._pace.in_a_row == 0:
            return self._again[0]
        if self._fresh:
            return self._fresh[0]
        return min(self._again, key=lambda waiter: waiter.tries)

    def _remove(self, waiter: _Waiter) -> None:
        (self._again if waiter.tries else self._fresh).remove(waiter)

    # ---------------------------------------------------------------- waiting

    async def _wait(self, mine: _Waiter) -> None:
        try:
            while not mine.over:
                if self._keeper is mine:
                    await self._keep_time(mine)
                else:
                    mine.woken = anyio.Event()
                    await mine.woken.wait()
        except BaseException:
            # Cancelled. The turn may have come in the same moment: then it goes on to the next.
            if mine.granted:
                self._undo(mine)
            elif not mine.over:
                self._remove(mine)
            raise
        finally:
            if self._keeper is mine:
                self._keeper = None
            self.serve()

    def _appoint(self, head: _Waiter, due: float) -> None:
        keeper = self._keeper
        if keeper is None:
            head.due = due
            self._keeper = head
            head.wake()
        elif due < keeper.due - _EARLIER:
            keeper.due = due
            keeper.wake()

    async def _keep_time(self, mine: _Waiter) -> None:
        seconds = mine.due - self._clock.monotonic()
        left = _INF if self._allowance is None else self._allowance.seconds_left()
        with anyio.CancelScope() as mine.sleep:
            await self._clock.sleep(min(seconds, left))
        woken, mine.sleep = mine.sleep.cancelled_caught, None
        if woken:  # it was told of an earlier time, or may go
            return
        self._keeper = None
        if self._allowance is not None and left <= seconds:
            self.dismiss(self._allowance.out_of_time)
        self.serve()

    def _check_time(self, mine: _Waiter) -> None:
        """What was granted after its time does not leave any more."""
        if not mine.granted:
            return
        if self._allowance is not None and self._allowance.seconds_left() <= 0:
            self._undo(mine)
            raise self._allowance.out_of_time()
        if self._clock.monotonic() > mine.until:
            self._undo(mine)
            mine.granted = False

    def _undo(self, mine: _Waiter) -> None:
        if self.meter is not None:
            self.meter.undo(mine.tokens, self._clock.monotonic())
        self.give()


class _Waiter:
    __slots__ = ("due", "error", "granted", "over", "sleep", "tokens", "tries", "until", "woken")

    def __init__(self, tokens: int, tries: int, until: float) -> None:
        self.tokens = tokens
        self.tries = tries
        self.until = until
        self.granted = self.over = False
        self.error: Halted | None = None
        self.due = _INF
        self.sleep: anyio.CancelScope | None = None
        self.woken: anyio.Event | None = None

    def end(self) -> None:
        """Wait no longer."""
        self.over = True
        self.wake()

    def wake(self) -> None:
        """Look again at what it waits for."""
        if self.sleep is not None:
            self.sleep.cancel()
        elif self.woken is not None:
            self.woken.set()
