"""The lease of a unit: taken when it begins, renewed on its line for as long as it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

import anyio

from executors.calls.calls import Calls
from executors.engine.units import Line
from executors.errors import Halted
from executors.gate.allowance import Estimate
from executors.journal.json_lines import decode, encode
from executors.lease_allowance import LeaseAllowance
from executors.leases import Lease
from executors.models.base import Model
from rlm.units.outbox import Outbox
from rlm.units.values import LeaseAsk

__all__ = ["LeaseKeeper", "UnitAllowance", "halted_of", "pack_halted"]

_SHARE: Final = 3  # a lease is renewed after this part of its time
_LEAST: Final = 0.2  # seconds between two renewals, whatever calls wait for
_LONG: Final = 86_400.0  # seconds
_LOOK: Final = 0.02  # seconds between two looks at calls that have to end first


class UnitAllowance(LeaseAllowance):
    """A lease that is renewed for as long as anybody is there, so that its end bounds no wait.

    A server may ask to be left alone for longer than a lease lasts. Where nobody renews it, no call
    begins any more, and the keeper ends those that wait.
    """

    def seconds_left(self) -> float:
        return _LONG if self.lasts > 0 else 0.0

    @property
    def lasts(self) -> float:
        """Seconds until the lease ends, unless it is renewed."""
        return super().seconds_left()


class LeaseKeeper:
    """Keeps the allowance and the endpoint of a worker to its lease.

    Args:
        outbox: knows whether a server refused.
    """

    def __init__(
        self,
        line: Line,
        allowance: UnitAllowance,
        calls: Calls,
        model: Model,
        *,
        lease: Lease,
        outbox: Outbox,
    ) -> None:
        self._line = line
        self._allowance = allowance
        self._calls = calls
        self._endpoint = calls.endpoint(model)
        self._outbox = outbox
        self._need: Estimate | None = None
        self._short = anyio.Event()
        self._renewing = anyio.Lock()
        self.lease = lease

    def short(self, need: Estimate) -> None:
        """Hear that a call found no room."""
        self._need = need
        self._short.set()

    async def begin(self) -> None:
        """Wait until there is a slot at least, as where all were held by others."""
        self._allowance.extend(self.lease)
        while self.lease.slots == 0 and await self._renew():  # noqa: ASYNC110 - others hold them
            await anyio.sleep(_LEAST)
        if self.lease.slots:
            self._endpoint.resize(cap=self.lease.slots, limits=self.lease.limits)

    async def keep(self) -> None:
        """Renew in time, or as soon as a call waits for more than there is, until the book ends it."""
        going = True
        while going:
            with anyio.move_on_after(self._allowance.lasts / _SHARE):
                await self._short.wait()
            going = await self._renew()
            self._calls.recheck()
            await anyio.sleep(_LEAST)

    @asynccontextmanager
    async def ending(self) -> AsyncGenerator[None]:
        """Renew no more from here on: what was reported was heard."""
        async with self._renewing:
            yield

    async def _renew(self) -> bool:
        async with self._renewing:
            return await self._renewed()

    async def _renewed(self) -> bool:
        """Get the next lease; False when there is none any more."""
        ask = LeaseAsk(
            drawn=self._allowance.report(),
            need=self._need,
            refused=self._outbox.refused,
            idle=self._need is not None and self._allowance.pause(),
        )
        self._short, self._need, self._outbox.refused = anyio.Event(), None, False
        said = await self._line.ask("lease", ask.to_bytes())
        if (halted := halted_of(said)) is not None:
            self._allowance.end(halted)
            return False
        before, self.lease = self.lease, Lease.from_json(said)
        self._allowance.extend(self.lease)
        if self.lease.slots and (self.lease.slots, self.lease.limits) != (
            before.slots,
            before.limits,
        ):
            self._endpoint.resize(cap=self.lease.slots, limits=self.lease.limits)
        if 0 < self.lease.slots < before.slots:
            await self._drain()
        return True

    async def _drain(self) -> None:
        """Say when no more calls are in flight than the lease has slots: others wait for them."""
        while self._endpoint.in_flight > self.lease.slots:  # noqa: ASYNC110 - once in a while
            await anyio.sleep(_LOOK)
        await self._line.ask("drained")


def halted_of(said: bytes) -> Halted | None:
    """Return the halt that a lease was answered with; None for a lease."""
    fields = cast("dict[str, str]", decode(said))
    if "bound" not in fields:
        return None
    what = fields.pop("what")
    halted = Halted(**fields)
    halted.what = what
    return halted


def pack_halted(halted: Halted) -> bytes:
    """Return a halt as what a lease is answered with."""
    fields = {
        "bound": halted.bound,
        "scope": halted.scope,
        "limit": halted.limit,
        "what": halted.what,
    }
    return encode({**fields, "hint": halted.hint} if halted.hint else fields)
