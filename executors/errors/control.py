"""Control signals: a bound said stop, and nothing failed."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from executors.errors.base import Fault, RlmError
from executors.errors.model import ModelError

__all__ = [
    "BudgetUnavailable",
    "DiskFault",
    "Halted",
    "Interrupted",
    "ModelUnusable",
    "OutOfQuota",
    "OverBudget",
    "ReplayMiss",
]


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

    @property
    def short(self) -> str:
        """What it says of each thing that was not done for it: the same of all."""
        return self.what


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


class OverBudget(Halted):
    """A budget is used up, or what is left does not hold the worst case of the next call.

    Args:
        rule: which rule of the gate says so: `budget.maxCostUsd`, `limits.maxTurns`, …
        reason: with what was used and the bound, for people.
        spent: what was used until now, for people; empty where that is not the point.
        cap: the bound that holds, for people.
    """

    code = "over-budget"

    def __init__(
        self, *, rule: str, reason: str, spent: str = "", cap: str = "", hint: str | None = None
    ) -> None:
        super().__init__(bound=rule, scope="run", limit=cap or reason, hint=hint)
        self.what = f"halted by {rule}: {reason}"
        self.rule = rule
        self.reason = reason
        self.spent = spent
        self.cap = cap

    @property
    def short(self) -> str:
        return f"halted by {self.rule}"


class BudgetUnavailable(Halted):
    """The ledger of the run family cannot be read or written: nobody knows what may be spent."""

    code = "budget-unavailable"
    fault = "world"

    def __init__(self, what: str, *, where: str, hint: str) -> None:
        super().__init__(bound="budget", scope="run", limit="unknown", hint=hint)
        self.what = what
        self.where = where
