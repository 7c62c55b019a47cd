"""A gate as those see it who call models and tools: what each is about to do becomes an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from executors.gate.actions import plain
from executors.gate.decisions import Settled
from executors.gate.gate import Gate
from executors.gate.governor import Deed, Done
from executors.gate.results import Result
from executors.gate.rules.fs import FsRule
from executors.gate.rules.net import NetRule
from executors.gate.rules.order import Rules

__all__ = ["Governed", "action_of"]

_ERROR: Final = 500
"""Characters of what a failed tool said, in the audit."""


class Governed:
    """Governs the tools of a run by a gate.

    What a tool does is told by its `kind`; one that has none is judged by its name, and by URLs that it
    is given. The name holds for lists of tools in any case.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._rules = Rules(gate.config)
        self._net = NetRule(gate.config.net)
        self._fs = FsRule(gate.config.fs)
        self._offered: dict[str, bool] = {}

    def offers(self, tool: str) -> bool:
        """Return whether a model is told of a tool: by the lists of names.

        What was spent has no part in it: a run that goes on tells the model of the same tools, or it
        would ask anew what is answered.
        """
        found = self._offered.get(tool)
        if found is None:
            found = self._offered[tool] = self._rules.allows(plain({"type": tool}))
        return found

    def why_not(self, url: str) -> str | None:
        """Return why a fetch may not be led to a URL: each hop of a redirect has to pass like the first."""
        return self._net.why_not(url)

    def why_not_read(self, path: str) -> str | None:
        """Return why a search may not read a file or folder: each has to pass like the one it began at."""
        denied = self._fs.deny(plain({"type": "read", "path": path}))
        return None if denied is None else f"{denied.reason} [{denied.rule}]"

    async def check(self, deed: Deed) -> Settled:
        """Decide about a deed, and count it where it is allowed."""
        return await self.gate.check(action_of(deed), depth=deed.depth)

    async def record(self, deed: Deed, done: Done, *, aid: str) -> None:
        """Write down what came of a deed.

        Raises:
            Halted: the audit or the ledger cannot be written.
        """
        error = done.text[:_ERROR] if done.failed else None
        self.gate.record(action_of(deed), Result(error=error), aid=aid)

    def drop(self, aid: str) -> None:
        """Give back what was set aside for a deed that did not happen."""
        self.gate.release(aid)


def action_of(deed: Deed) -> Mapping[str, object]:
    """Return a deed as rules read it: its type is what it does, or else its name."""
    return {
        "type": deed.tool if deed.kind == "tool" else deed.kind,
        "tool": deed.tool,
        "args": dict(deed.arguments),
        "_ctx": {**deed.context, "at": deed.node},
    }
