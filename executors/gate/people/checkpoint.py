"""Tools that are never run without a person's word, whatever the rules say of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from math import isfinite
from typing import Final

from executors.errors import ValidationError
from executors.gate.decisions import Allow, Deny
from executors.gate.people.asking import Asking, Silence

__all__ = ["Checkpoint"]

_YES: Final = frozenset({"yes", "y", "approve", "approved"})
_RULE: Final = "checkpoint"


class Checkpoint:
    """Asks before each call of some tools.

    Only yes, y, approve and approved allow, in any case, with blanks around them or not. Any other
    answer, an error and silence deny. One question is open at a time.

    Args:
        tools: their names, exactly.
        ask: is given the question as one harmless line and returns the answer; a plain function
            runs in a thread of its own.
        timeout: seconds that an answer may take.

    Raises:
        ValidationError: no tool, a name that is none, or a timeout that bounds nothing.
    """

    def __init__(
        self,
        tools: Collection[str],
        *,
        ask: Callable[[str], Awaitable[object] | object],
        timeout: float = 300.0,
    ) -> None:
        if isinstance(tools, str) or not tools or not all(_is_name(tool) for tool in tools):
            raise ValidationError(
                f"tools={tools!r} names no tools"[:200],
                where="Checkpoint",
                hint='give their names in a list: tools=["send_email"]',
            )
        if isinstance(timeout, bool) or not isfinite(timeout) or timeout <= 0:
            raise ValidationError(
                f"timeout={timeout!r} bounds nothing", where="Checkpoint", hint="give seconds > 0"
            )
        self._tools = frozenset(tools)
        self._asking = Asking(ask, seconds=timeout)

    def covers(self, tool: str) -> bool:
        """Return whether a tool needs a person's word."""
        return tool in self._tools

    async def check(self, tool: str, shown: str, *, aid: str = "") -> Allow | Deny:
        """Ask about one call; a tool that is not covered is allowed.

        Args:
            shown: the call as a person may read it, without secrets and controls.
        """
        if not self.covers(tool):
            return Allow(aid=aid)
        async with self._asking.turn() as turn:
            got = await self._asking.answer(f"May {tool} run? {shown}", turn)
        if isinstance(got, Silence):
            return Deny(rule=_RULE, reason=got.reason, aid=aid)
        if isinstance(got.value, str) and got.value.strip().lower() in _YES:
            return Allow(rule=_RULE, reason="a person approved it", aid=aid)
        return Deny(rule=_RULE, reason="a person did not approve it", aid=aid)


def _is_name(tool: object) -> bool:
    return isinstance(tool, str) and bool(tool.strip())
