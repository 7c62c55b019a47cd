"""Plans that were made before, for a while."""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from typing import Final

from executors.clock import Clock, SystemClock
from executors.errors import ValidationError
from executors.ids import ContentKey
from executors.messages import ModelReply
from planner.results import is_count

__all__ = ["PlanCache"]

_MOST: Final = 256


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


class PlanCache:
    """Keeps the replies that plans were read from; shared by as many planners as like to.

    The key is that of the call that asks for the plan first: all that decides it.

    Args:
        ttl: seconds that a plan holds.
        clock: where they are measured.
        most: plans kept; the oldest goes first.

    Raises:
        ValidationError: a time that is not above 0, or endless, or no room for a plan.
    """

    def __init__(self, ttl: float, *, clock: Clock | None = None, most: int = _MOST) -> None:
        if not _is_time(ttl):
            raise ValidationError(
                f"ttl={ttl!r}", where="rlm.PlanCache", hint="give seconds above 0; no cache is None"
            )
        if not is_count(most):
            raise ValidationError(
                f"most={most!r}", where="rlm.PlanCache", hint="give a number of plans, from 1 on"
            )
        self._ttl = ttl
        self._clock = clock or SystemClock()
        self._most = most
        self._kept: OrderedDict[ContentKey, tuple[float, ModelReply]] = OrderedDict()

    def find(self, key: ContentKey) -> ModelReply | None:
        """Return what is kept under a key and still holds."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self._clock.monotonic() >= found[0]:
            del self._kept[key]
            return None
        return found[1]

    def keep(self, key: ContentKey, reply: ModelReply) -> None:
        """Keep a reply from now on."""
        self._kept.pop(key, None)
        self._kept[key] = (self._clock.monotonic() + self._ttl, reply)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)
