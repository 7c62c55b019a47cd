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
│   │   └── CircuitOpen     too many calls in a row failed: this one was not sent
│   ├── TransportFault      connection reset, or a body cut short: possibly paid
│   │   ├── ConnectFault    refused or unreachable: nothing was sent
│   │   ├── ConnectTimeout  no connection within the connect bound
│   │   ├── HeadersTimeout  connected, but no response headers within the bound
│   │   └── IdleTimeout     no parsed event within the idle bound
│   ├── DeadlineExceeded    the total bound of one call; terminal
│   ├── RetriesExhausted    the last of all tries failed; .last holds its error
│   ├── AllFailed           each of several models failed; .errors holds what they said
│   ├── MalformedReply      a 200 that is not what the protocol promises
│   └── PromptCut           the server counted fewer tokens than the prompt has words
├── ToolBroken              the world's: a tool cannot serve any call any more
├── OutputError             the world's: what came out cannot be written where it was wanted (exit 4)
├── Halted                  a control signal: a bound said stop; names bound and scope
│   ├── ModelUnusable       the model cannot serve this run at all; .last holds its error
│   ├── OutOfQuota          the server's limit resets too late to wait for; .resume_after says when
│   ├── DiskFault           the run directory cannot be written: what is not durable is not answered
│   ├── Interrupted         somebody asked the run to stop; what was in flight could end
│   ├── ReplayMiss          a replay was asked for a call that its journal does not hold
│   ├── OverBudget          a rule of the gate: the budget, or a count of the run, is used up
│   └── BudgetUnavailable   the ledger cannot be read or written: nobody knows what is left
└── InternalError           ours: please report

The base stands in `base`, its families in `usage`, `model` and `control`.
"""

from executors.errors.base import (
    Fault,
    InternalError,
    OutputError,
    RlmError,
    ToolBroken,
)
from executors.errors.control import (
    BudgetUnavailable,
    DiskFault,
    Halted,
    Interrupted,
    ModelUnusable,
    OutOfQuota,
    OverBudget,
    ReplayMiss,
)
from executors.errors.model import (
    AllFailed,
    AuthError,
    CircuitOpen,
    ConnectFault,
    ConnectTimeout,
    ContextExceeded,
    DeadlineExceeded,
    HeadersTimeout,
    IdleTimeout,
    MalformedReply,
    ModelError,
    NoQuota,
    NotEncodable,
    PromptCut,
    RateLimited,
    RequestRejected,
    RetriesExhausted,
    ServerFault,
    TransportFault,
)
from executors.errors.usage import (
    ConfigError,
    DuplicateIds,
    LabelsError,
    MissingExtra,
    RunDirError,
    SourceError,
    UsageError,
    ValidationError,
)

__all__ = [
    "AllFailed",
    "AuthError",
    "BudgetUnavailable",
    "CircuitOpen",
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
    "OverBudget",
    "PromptCut",
    "RateLimited",
    "ReplayMiss",
    "RequestRejected",
    "RetriesExhausted",
    "RlmError",
    "RunDirError",
    "ServerFault",
    "SourceError",
    "ToolBroken",
    "TransportFault",
    "UsageError",
    "ValidationError",
]
