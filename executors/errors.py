"""Typed errors: one class for each cause that a caller would treat differently.

RlmError                    .code, .fault, .retryable; three lines: what, where, what to do
├── UsageError              yours: the call or the command is wrong; nothing was spent (exit 2)
│   ├── ValidationError     a value or an option outside its choices
│   ├── ConfigError         a model, key, URL or environment variable that cannot work
│   ├── MissingExtra        an optional dependency is not installed
│   ├── SourceError         a source cannot be read as asked: file, line, column
│   │   └── DuplicateIds    ids that stand more than once
│   ├── LabelsError         too few labels, or all of one kind
│   └── RunDirError         a run directory that exists, is locked, or cannot be written
├── ModelError              the world's: a model or the way to it
│   ├── AuthError           401, 403
│   │   └── NoQuota         the account has no money or quota left: 402, 429
│   ├── RequestRejected     400, 404, 413, 422: this request can never succeed
│   │   ├── ContextExceeded prompt plus reserve longer than the window
│   │   └── NotEncodable    the request cannot be written as UTF-8 JSON
│   ├── RateLimited         429; retry_after in seconds, or None
│   ├── ServerFault         5xx, or an error event inside a stream
│   ├── TransportFault      connection reset, or a body cut short: possibly paid
│   │   ├── ConnectFault    refused or unreachable: nothing was sent
│   │   ├── ConnectTimeout  no connection within the connect bound
│   │   ├── HeadersTimeout  connected, but no response headers within the bound
│   │   └── IdleTimeout     no parsed event within the idle bound
│   ├── DeadlineExceeded    the total bound of one call; terminal
│   ├── RetriesExhausted    the last of all tries failed; .last holds its error
│   ├── MalformedReply      a 200 that is not what the protocol promises
│   └── PromptCut           the server counted fewer tokens than the prompt has words
├── OutputError             the world's: what came out cannot be written where it was wanted (exit 4)
├── Halted                  a control signal: a bound said stop; names bound and scope
│   ├── ModelUnusable       the model cannot serve this run at all; .last holds its error
│   ├── OutOfQuota          the server's limit resets too late to wait for; .resume_after says when
│   ├── DiskFault           the run directory cannot be written: what is not durable is not answered
│   ├── Interrupted         somebody asked the run to stop; what was in flight could end
│   └── ReplayMiss          a replay was asked for a call that its journal does not hold
└── InternalError           ours: please report
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

__all__ = [
    "AuthError",
    "ConfigError",
    "ConnectFault",
    "ConnectTimeout",
    "ContextExceeded",
    "DeadlineExceeded",
    "DiskFault",
    "DuplicateIds",
    "Fault",
    "Halted",
    "HeadersTimeout",
    "IdleTimeout",
    "InternalError",
    "Interrupted",
    "LabelsError",
    "MalformedReply",
    "MissingExtra",
    "ModelError",
    "ModelUnusable",
    "NoQuota",
    "NotEncodable",
    "OutOfQuota",
    "OutputError",
    "PromptCut",
    "RateLimited",
    "ReplayMiss",
    "RequestRejected",
    "RetriesExhausted",
    "RlmError",
    "RunDirError",
    "ServerFault",
    "SourceError",
    "TransportFault",
    "UsageError",
    "ValidationError",
]

Fault = Literal["yours", "world", "ours"]


class RlmError(Exception):
    """Base of all our errors.

    Args:
        what: one line that quotes the offending value.
        where: file, line, option, or call; None when `what` says it all.
        hint: what to do next, with the choices.
    """

    code: ClassVar[str] = "error"
    fault: ClassVar[Fault] = "ours"
    retryable: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        # Users import these from `rlm`, so that is the name a traceback should show.
        cls.__module__ = "rlm"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(line for line in (self.what, self.where, self.hint) if line)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__))


def _rebuild(cls: type[RlmError], state: dict[str, object]) -> RlmError:
    error = cls.__new__(cls, state["what"])
    error.__dict__.update(state)
    return error


class UsageError(RlmError):
    """The call or the command is wrong; nothing was spent."""

    code = "usage"
    fault = "yours"


class ValidationError(UsageError):
    """A value or an option outside its choices."""

    code = "validation"


class ConfigError(UsageError):
    """A model spec, key, URL or environment variable that cannot work."""

    code = "config"


class MissingExtra(UsageError):
    """An optional dependency is not installed.

    Args:
        extra: name of the extra, as in `pip install 'rlm-recurse[extra]'`.
        needed_for: what asked for it.
    """

    code = "missing-extra"

    def __init__(self, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the extra {extra!r}, which is not installed",
            hint=f"install it with: pip install 'rlm-recurse[{extra}]'",
        )
        self.extra = extra


class SourceError(UsageError):
    """A source cannot be read as asked."""

    code = "source"


class DuplicateIds(SourceError):
    """Ids that stand more than once.

    Args:
        examples: (id, where) of the first repeats, at most 20.
        total: number of repeats found.
    """

    code = "duplicate-ids"

    def __init__(self, examples: list[tuple[str, str]], *, total: int) -> None:
        shown = "; ".join(f"{id_!r} at {where}" for id_, where in examples[:20])
        super().__init__(
            f"{total} record(s) repeat an id that was seen before",
            where=f"first {len(examples[:20])}: {shown}",
            hint="name another id column, or go on with on_duplicate='suffix' (--on-duplicate suffix)",
        )
        self.examples = examples[:20]
        self.total = total


class LabelsError(UsageError):
    """Too few labels, or all of one kind."""

    code = "labels"


class RunDirError(UsageError):
    """A run directory that exists, is locked, or cannot be written."""

    code = "run-dir"


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


class MalformedReply(ModelError):
    """A 200 that is not what the protocol promises."""

    code = "malformed-reply"
    maybe_paid = True
    retryable = True


class PromptCut(ModelError):
    """The server counted fewer tokens than the prompt has words: it cut the prompt silently."""

    code = "prompt-cut"
    maybe_paid = True


class OutputError(RlmError):
    """What came out cannot be written where it was wanted: a full disk, a folder that went away."""

    code = "output"
    fault = "world"


class Halted(RlmError):
    """A bound said stop. A control signal, not a failure.

    Args:
        bound: the name of the bound: "calls", "tokens", "usd", "seconds", …
        scope: whose bound it is: "run", "node root.2", …
        limit: the bound, as shown to people.
    """

    code = "halted"
    fault: ClassVar[Fault] = "yours"

    def __init__(self, *, bound: str, scope: str, limit: str, hint: str | None = None) -> None:
        super().__init__(f"halted: the {bound} bound of {scope} ({limit}) is reached", hint=hint)
        self.bound = bound
        self.scope = scope
        self.limit = limit


class ModelUnusable(Halted):
    """The model cannot serve this run at all: to go on would only repeat the same failure.

    Args:
        last: the error that says so.
        failures: calls in a row that failed.
    """

    code = "model-unusable"
    fault = "world"

    def __init__(self, *, last: ModelError, failures: int) -> None:
        super().__init__(bound="failures", scope="run", limit=str(failures), hint=last.hint)
        self.what = f"stopped after {failures} failed call(s) in a row: {last.what}"
        self.where = last.where
        self.last = last


class OutOfQuota(Halted):
    """The server's limit resets too late to wait for; the run can go on after that.

    Args:
        last: the refusal that says so.
        resume_after: when the server takes calls again.
    """

    code = "out-of-quota"
    fault = "world"

    def __init__(self, *, last: ModelError, resume_after: datetime) -> None:
        when = f"{resume_after:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(bound="quota", scope="the server", limit=when, hint=f"resume after {when}")
        self.what = f"stopped: the server takes no calls until {when}: {last.what}"
        self.where = last.where
        self.last = last
        self.resume_after = resume_after


class DiskFault(Halted):
    """The run directory cannot be written; what could not be made durable was not acknowledged."""

    code = "disk"
    fault = "world"

    def __init__(self, what: str, *, where: str | None = None) -> None:
        super().__init__(
            bound="disk",
            scope="run",
            limit="full",
            hint="make room, or mend the disk, then go on with: rlm resume DIR",
        )
        self.what = what
        self.where = where


class Interrupted(Halted):
    """Somebody asked the run to stop."""

    code = "interrupted"

    def __init__(self, by: str = "Ctrl-C") -> None:
        super().__init__(bound="interrupt", scope="run", limit=by)
        self.what = f"stopped by {by}"


class ReplayMiss(Halted):
    """A replay was asked for a call that its journal does not hold: something decides it anew.

    Args:
        key: the call key that was looked for.
    """

    code = "replay-miss"

    def __init__(self, *, key: str, where: str) -> None:
        super().__init__(
            bound="replay",
            scope="run",
            limit=key,
            hint="prompts, model, window, passes and corpus have to be those of the recorded run",
        )
        self.what = f"no answer is recorded for call {key}, and a replay asks no server"
        self.where = where
        self.key = key


class InternalError(RlmError):
    """Our fault."""

    code = "internal"
