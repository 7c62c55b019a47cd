"""Whether a call may run: the policy's word, and a person's where the policy wants one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from executors.boundary import Overdue, Raised, Returned, attempt, described
from executors.gate.decisions import Allow, Ask, Deny, Halt, Settled
from executors.loop.worker import AskPerson, Policy, Question, ToolRequest

__all__ = ["Warn", "decide"]

Warn = Callable[[str, str], None]

_YES: Final = frozenset({"yes", "y", "approve", "approved"})
_PATIENCE: Final = 300.0
"""Seconds that a policy, and then a person, may take."""
_POLICY_ERROR: Final = Deny(rule="policy", reason="policy error")


def _silent(code: str, message: str) -> None:
    del code, message


async def decide(
    policy: Policy | None,
    request: ToolRequest,
    *,
    ask: AskPerson | None = None,
    patience: float = _PATIENCE,
    warn: Warn = _silent,
) -> Settled:
    """Return what a policy says of a call; whatever is not clearly a yes is a deny.

    Args:
        ask: who is asked where the policy wants a person; None denies.
        patience: seconds for the policy, and again for the person.
        warn: hears, as code and message, of a policy or a person that could not be heard.

    Raises:
        Halted: the policy raised it.
    """
    if policy is None:
        return Allow()
    match await attempt(policy, request, seconds=patience):
        case Returned(value=Ask() as asked):
            return await _person(asked, request, ask, patience, warn)
        case Returned(value=(Allow() | Deny() | Halt()) as decision):
            return decision
        case Returned(value=value):
            fault = f"it returned {type(value).__name__}, which is no decision"
        case Raised(error=error):
            fault = f"it raised {described(error)}"
        case Overdue(seconds=seconds):
            fault = f"it did not answer within {seconds:g} s"
    warn("policy", f"the policy could not decide about {request.tool!r}, a deny: {fault}")
    return _POLICY_ERROR


async def _person(
    asked: Ask, request: ToolRequest, ask: AskPerson | None, patience: float, warn: Warn
) -> Allow | Deny:
    if ask is None:
        return Deny(rule=asked.rule, reason="a person would have to allow it, and nobody is here")
    question = Question(request=request, rule=asked.rule, question=asked.question)
    match await attempt(ask, question, seconds=patience):
        case Returned(value=str(answer)) if answer.strip().lower() in _YES:
            return Allow()
        case Returned():
            return Deny(rule=asked.rule, reason="a person did not allow it")
        case Raised(error=error):
            fault = f"asking raised {described(error)}"
        case Overdue(seconds=seconds):
            fault = f"nobody answered within {seconds:g} s"
    warn("ask", f"no person decided about {request.tool!r}, a deny: {fault}")
    return Deny(rule=asked.rule, reason=f"a person would have to allow it: {fault}")
