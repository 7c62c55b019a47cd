"""All rules in their order; the first word that settles it counts.

1. names that are denied
2. what no action may hold, fields that forbid it, and what cannot be judged at all
3. commands, files, hosts; children and depth; arguments of single tools; rates
4. what a person is asked about: commands that destroy, what an action holds, its fields
5. names, where only some are allowed
6. whatever is left is allowed

What is asked about stands before the list of allowed names, so that no listing silences a question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from executors.gate.actions import Action
from executors.gate.config.config import GateConfig
from executors.gate.decisions import Allow, Ask, Decision, Deny, Halt
from executors.gate.rules.bash import BashRule
from executors.gate.rules.content import ContentRule
from executors.gate.rules.flags import FlagsRule
from executors.gate.rules.fs import FsRule
from executors.gate.rules.net import NetRule
from executors.gate.rules.tools import ToolsRule

__all__ = ["Limit", "LimitsCheck", "Rules"]

Limit = Literal["child", "spawn", "defer"]
"""What is counted besides: children with their depth, and how many of these within a minute."""
LimitsCheck = Callable[[Limit], Deny | Halt | None]
"""Says whether one more would pass a bound, and counts nothing."""

_DEFAULT = Allow()


class Rules:
    """The rules of one configuration. Judging is pure: nothing is counted, nobody is asked.

    Raises:
        ConfigError: a value that cannot be a rule.
    """

    def __init__(self, config: GateConfig) -> None:
        self._tools = ToolsRule(config.tools)
        self._content = ContentRule(config.content)
        self._flags = FlagsRule(config.flags)
        self._bash = BashRule(config.bash)
        self._fs = FsRule(config.fs)
        self._net = NetRule(config.net)

    def evaluate(self, action: Action, limits: LimitsCheck | None = None) -> Decision:
        """Return what the rules say of an action.

        Args:
            limits: asked at their place in the order; None looks at none.
        """
        return (
            self._forbidden(action)
            or self._refused(action, limits)
            or self._asked(action)
            or self._tools.deny_unlisted(action)
            or _DEFAULT
        )

    def allows(self, action: Action) -> bool:
        """Return whether an action could be allowed, alone or by a person's word.

        A name alone is judged by lists of names: what is to be done with the tool is not known yet.
        """
        if not action.bare:
            return not isinstance(self.evaluate(action), Deny)
        return (
            self._tools.deny_listed(action)
            or self._flags.deny(action)
            or self._tools.deny_unlisted(action)
        ) is None

    def _forbidden(self, action: Action) -> Deny | None:
        return (
            self._tools.deny_listed(action)
            or self._content.deny(action)
            or self._flags.deny(action)
            or self._content.deny_broken(action)
        )

    def _refused(self, action: Action, limits: LimitsCheck | None) -> Deny | Halt | None:
        return (
            self._bash.deny(action)
            or self._fs.deny(action)
            or self._net.deny(action)
            or (limits("child") if limits is not None and action.kind == "spawn" else None)
            or self._tools.deny_arguments(action)
            or _rate(action, limits)
        )

    def _asked(self, action: Action) -> Ask | None:
        return self._bash.ask(action) or self._content.ask(action) or self._flags.ask(action)


def _rate(action: Action, limits: LimitsCheck | None) -> Deny | Halt | None:
    kind = action.kind
    if limits is None or kind not in ("spawn", "defer"):
        return None
    return limits(kind)
