"""The world's: a model, or the way to it, failed."""

from __future__ import annotations

from collections.abc import Sequence

from executors.errors.base import RlmError

__all__ = [
    "AllFailed",
    "AuthError",
    "CircuitOpen",
    "ConnectFault",
    "ConnectTimeout",
    "ContextExceeded",
    "DeadlineExceeded",
    "HeadersTimeout",
    "IdleTimeout",
    "MalformedReply",
    "ModelError",
    "NoQuota",
    "NotEncodable",
    "PromptCut",
    "RateLimited",
    "RequestRejected",
    "RetriesExhausted",
    "ServerFault",
    "TransportFault",
]


class ModelError(RlmError):
    """A model, or the way to it, failed."""

    code = "model"
    fault = "world"
    maybe_paid: bool = False
    """Whether the server may have done, and billed, the work before this error."""
    attempts: int = 1
    """Requests that were sent, this one included; the endpoint counts."""


class AuthError(ModelError):
    """The server refused the key (401, 403)."""

    code = "auth"


class NoQuota(AuthError):
    """The server knows the key, and its account has no money or quota left (402, 429)."""

    code = "quota"


class RequestRejected(ModelError):
    """The server, or our own check, says that this request can never succeed."""

    code = "rejected"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status


class ContextExceeded(RequestRejected):
    """Prompt plus reserve is longer than the model's window (tokens)."""

    code = "context-exceeded"


class NotEncodable(RequestRejected):
    """The request cannot be written as UTF-8 JSON."""

    code = "not-encodable"


class RateLimited(ModelError):
    """429; `retry_after` is the server's wish in seconds, None when it gave none."""

    code = "rate-limited"
    retryable = True

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_after = retry_after


class ServerFault(ModelError):
    """5xx, or an error event inside a stream; `retry_after` in seconds or None."""

    code = "server-fault"
    retryable = True

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_after = retry_after
        self.status = status


class CircuitOpen(ServerFault):
    """Too many calls in a row failed: this one was not sent.

    Args:
        failures: calls that failed in a row.
        retry_after: seconds until one call is let through to see.
    """

    code = "circuit-open"

    def __init__(self, *, where: str, failures: int, retry_after: float) -> None:
        super().__init__(
            f"not sent: the last {failures} call(s) failed",
            where=where,
            hint=f"the server is asked again in {retry_after:,.0f} s",
            retry_after=retry_after,
        )
        self.failures = failures
        self.attempts = 0


class TransportFault(ModelError):
    """Connection reset, or a body cut short."""

    code = "transport"
    maybe_paid = True
    retryable = True


class ConnectFault(TransportFault):
    """Refused or unreachable: nothing was sent."""

    code = "connect"
    maybe_paid = False


class ConnectTimeout(TransportFault):
    """No connection within the connect bound."""

    code = "connect-timeout"
    maybe_paid = False


class HeadersTimeout(TransportFault):
    """Connected, but no response headers within the bound."""

    code = "headers-timeout"


class IdleTimeout(TransportFault):
    """No parsed event within the idle bound; keep-alive comments do not count."""

    code = "idle-timeout"


class DeadlineExceeded(ModelError):
    """The total bound of one call fired; terminal, since a retry would wait as long again."""

    code = "deadline"
    maybe_paid = True


class RetriesExhausted(ModelError):
    """The last of all tries failed.

    Args:
        last: the error of the last try.
        attempts: requests that were sent.
    """

    code = "retries-exhausted"

    def __init__(self, *, last: ModelError, attempts: int) -> None:
        super().__init__(
            f"gave up after {attempts} attempt(s): {last.what}", where=last.where, hint=last.hint
        )
        self.last = last
        self.attempts = attempts
        self.maybe_paid = last.maybe_paid


class AllFailed(ModelError):
    """Each of several models failed; another try can help where it could help one of them.

    Args:
        errors: what each said, in the order in which they were asked.
    """

    code = "all-failed"

    def __init__(self, errors: Sequence[ModelError]) -> None:
        said = "; ".join(f"{error.where or error.code}: {error.what}" for error in errors)
        super().__init__(
            f"{len(errors)} model(s) were asked, and each failed: {said}", hint=errors[-1].hint
        )
        self.errors = tuple(errors)
        self.attempts = sum(error.attempts for error in errors)
        self.maybe_paid = any(error.maybe_paid for error in errors)
        self.retryable = any(error.retryable for error in errors)


class MalformedReply(ModelError):
    """A 200 that is not what the protocol promises."""

    code = "malformed-reply"
    maybe_paid = True
    retryable = True


class PromptCut(ModelError):
    """The server counted fewer tokens than the prompt has words: it cut the prompt silently."""

    code = "prompt-cut"
    maybe_paid = True
