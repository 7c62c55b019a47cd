"""How long and how large one request may be, and the error that each bound stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from executors.errors import (
    ConnectFault,
    ConnectTimeout,
    DeadlineExceeded,
    HeadersTimeout,
    IdleTimeout,
    MalformedReply,
    ModelError,
    TransportFault,
    ValidationError,
)
from executors.secrets import scrub

__all__ = ["Bounds", "Faults", "Phase"]

Phase = Literal["connect", "headers", "idle"]
"""What a request waits for: a connection, the response's headers, more of its body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long one request may take, in seconds. Each is finite."""

    connect: float = 10.0
    """Name look-up, TCP, a proxy's tunnel and TLS together."""
    headers: float = 120.0
    """From the request sent to the response's headers."""
    idle: float = 60.0
    """Between two chunks of a body, or two events of a stream that bring the answer on: comments,
    empty deltas and counts do not."""
    total: float = 600.0
    """The whole request, any wait for a connection included."""
    body: int = 64 * 1024 * 1024
    """Bytes of a response, decompressed."""

    def __post_init__(self) -> None:
        for name in ("connect", "headers", "idle", "total", "body"):
            value: object = getattr(self, name)
            if not _bounds_something(value):
                raise ValidationError(
                    f"{name}={value!r} is not a bound", hint="give a finite number above 0"
                )


def _bounds_something(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value > 0


@dataclass(frozen=True, slots=True)
class Faults:
    """Makes the errors of requests to one place."""

    bounds: Bounds
    where: str
    """What errors give as their place; it holds no secret."""

    def late(self, phase: Phase, *, whole: bool) -> ModelError:
        """A bound fired: of the phase, or of the whole request.

        While it connects nothing was sent, so that this is no deadline of a call that was paid.
        """
        bounds = self.bounds
        if phase == "connect":
            which = f"{bounds.total:g} s (total)" if whole else f"{bounds.connect:g} s (connect)"
            return self.make(ConnectTimeout, f"no connection within {which}")
        if whole:
            return self.make(DeadlineExceeded, f"not done within {bounds.total:g} s (total)")
        if phase == "idle":
            return self.make(IdleTimeout, f"no event for {bounds.idle:g} s (idle)")
        return self.make(HeadersTimeout, f"no answer within {bounds.headers:g} s (headers)")

    def unconnected(self, detail: str, hint: str | None = None) -> ModelError:
        """No connection came about; nothing was sent."""
        return self.make(ConnectFault, f"cannot connect: {detail}", hint)

    def broken(self, detail: str) -> ModelError:
        """The connection broke after something was sent: the server may have done the work."""
        return self.make(TransportFault, f"the connection broke: {detail}")

    def undecodable(self, detail: str) -> ModelError:
        """The body is compressed in a way that cannot be undone."""
        return self.make(MalformedReply, f"the body cannot be decoded: {detail}")

    def too_long(self) -> ModelError:
        """The body passed its bound."""
        return self.make(
            MalformedReply,
            f"the response is longer than {self.bounds.body:,} bytes",
            "raise Bounds(body=...) if the server may say that much",
        )

    def make(self, kind: type[ModelError], what: str, hint: str | None = None) -> ModelError:
        """Return an error with its usual hint, or another."""
        return kind(scrub(what), where=self.where, hint=hint or _HINTS.get(kind))


_HINTS: dict[type[ModelError], str] = {
    ConnectFault: "check that the server runs, and its host and port",
    ConnectTimeout: "check host, port and network, or raise the connect bound",
    HeadersTimeout: "raise the headers bound for a slow model, or ask for a stream",
    IdleTimeout: "raise the idle bound for a slow model",
    DeadlineExceeded: "raise the total bound or ask for fewer output tokens",
}
