"""From an error of an OpenAI-compatible server to one of ours: one class a cause.

Whatever the server says is data: scrubbed of keys, clipped, without control characters, quoted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urlsplit

import orjson

from executors.errors import (
    AuthError,
    ContextExceeded,
    ModelError,
    NoQuota,
    RateLimited,
    RequestRejected,
    ServerFault,
)
from executors.models.wire.http import HttpReply
from executors.secrets import scrub

__all__ = [
    "ServerSays",
    "clipped",
    "error_of_event",
    "error_of_reply",
    "read_error",
    "read_retry_after",
]

_CLIP = 300
# Statuses that a second try may well pass: time-out, conflict, too early.
_PASSING = frozenset({408, 409, 425})
# Gateways that gave up waiting: the model behind them may have worked, and billed.
_MAYBE_PAID = frozenset({504, 524})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_TOO_LONG = ("context length", "context_length", "context window", "maximum context", "too long")


class ServerSays:
    """The error object of a body, read leniently: servers differ in its shape."""

    __slots__ = ("code", "message", "param", "type")

    def __init__(self, document: object, fallback: str = "") -> None:
        outer = _mapping(document)
        inner = outer.get("error")
        error = _mapping(inner) or outer
        self.message = _string(error.get("message")) or _string(inner) or fallback
        self.type = _string(error.get("type"))
        self.code = _string(error.get("code"))
        self.param = _string(error.get("param"))

    def names(self, parameter: str) -> bool:
        """Whether the error is about that parameter."""
        if self.param:
            return self.param == parameter
        return parameter in self.message

    def is_any_of(self, words: frozenset[str]) -> bool:
        """Whether type or code is one of the words."""
        return self.type in words or self.code in words


def error_of_reply(reply: HttpReply, says: ServerSays, *, base_url: str, where: str) -> ModelError:
    """Return the typed error for a response that is no success."""
    status = reply.status
    what = f"the server answered {status}: {says.message!r}"
    if 300 <= status < 400:
        what = f"the server answered {status}, a redirect to {_target(reply)}, which is refused"
    wait = read_retry_after(reply.headers, datetime.now(UTC))
    if status == 429 and not says.is_any_of(_NO_MONEY):
        return RateLimited(what, where=where, retry_after=wait, hint=_LIMITED)
    if status >= 500 or status in _PASSING:
        fault = ServerFault(what, where=where, retry_after=wait, status=status)
        fault.maybe_paid = status in _MAYBE_PAID
        return fault
    return _final(status, says, what, base_url=base_url, where=where)


_LIMITED = "lower --concurrency, or wait for the limit to pass"
_BILLING = "the account has no quota left: see its billing"


def _final(status: int, says: ServerSays, what: str, *, base_url: str, where: str) -> ModelError:
    """Errors that no second try passes."""
    if status in (401, 403):
        return AuthError(
            what, where=where, hint="check the key, and that it belongs to this server"
        )
    if status in (402, 429):
        return NoQuota(what, where=where, hint=_BILLING)
    if status == 404:
        hint = f"check the model's name, and that {base_url} is the base URL of its server"
        return RequestRejected(what, where=where, hint=hint, status=status)
    if status == 413 or (status == 400 and _is_too_long(says)):
        hint = "use fewer items a window (--window) or a model with a longer window"
        return ContextExceeded(what, where=where, hint=hint, status=status)
    if 300 <= status < 400:
        hint = "redirects are not followed, since a key belongs to one origin: give the final URL"
        return RequestRejected(what, where=where, hint=hint, status=status)
    return RequestRejected(what, where=where, hint=None, status=status)


def _target(reply: HttpReply) -> str:
    """Return the origin of a redirect; the rest of its URL may hold what is nobody's business."""
    try:
        parts = urlsplit(reply.headers.get("location", ""))
    except ValueError:
        return "no readable URL"
    host = parts.netloc.rpartition("@")[2]
    return clipped(f"{parts.scheme}://{host}") if host else "another path of its own"


def error_of_event(
    name: str, document: Mapping[str, object], *, where: str, paid: bool
) -> ModelError:
    """Return the typed error for an error inside a 200: by its type, since the status says nothing.

    What is unknown counts as passing, like a 500; a refusal is never an error.
    """
    says = ServerSays(document, fallback=name)
    what = f"the server reported an error inside its answer: {clipped(says.message)!r}"
    kind = f"{says.type} {says.code}".lower()
    error: ModelError
    if says.is_any_of(_NO_MONEY):
        error = NoQuota(what, where=where, hint=_BILLING)
    elif "authentication" in kind or "permission" in kind:
        error = AuthError(what, where=where, hint="check the key and its account")
    elif "rate_limit" in kind or "too_many_requests" in kind or "429" in kind.split():
        error = RateLimited(what, where=where, hint=_LIMITED)
    elif _is_too_long(says):
        error = ContextExceeded(what, where=where, hint="use fewer items a window (--window)")
    elif "invalid_request" in kind or "not_found" in kind:
        error = RequestRejected(what, where=where)
    else:
        error = ServerFault(what, where=where)
    error.maybe_paid = paid
    return error


def read_error(body: bytes) -> ServerSays:
    """Return what an error body says; a body that is no JSON is its own message."""
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    says = ServerSays(document, fallback=clipped(body))
    says.message = clipped(says.message)
    return says


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the server's wish in seconds: never negative, None when it gave none we can read.

    A date is compared with the server's own, where it sends one: clocks differ.
    """
    millis = _finite(headers.get("retry-after-ms"))
    if millis is not None:
        return max(0.0, millis / 1000)
    text = headers.get("retry-after")
    seconds = _finite(text)
    if seconds is not None:
        return max(0.0, seconds)
    when = _date(text)
    if when is None:
        return None
    return max(0.0, (when - (_date(headers.get("date")) or now)).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        when = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def clipped(text: str | bytes) -> str:
    """Return foreign text fit for a message: one line, no control characters, no keys, short."""
    if isinstance(text, bytes):
        text = text[: 8 * _CLIP].decode("utf-8", "replace")
    words = scrub(" ".join(text[: 8 * _CLIP].split()))
    plain = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in words)
    return plain if len(plain) <= _CLIP else plain[: _CLIP - 1] + "…"


def _is_too_long(says: ServerSays) -> bool:
    text = f"{says.type} {says.code} {says.message}".lower()
    return any(words in text for words in _TOO_LONG)


def _finite(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _string(value: object) -> str:
    """Return a string or a number as text; anything else is nothing."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
