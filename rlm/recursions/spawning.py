"""The tool by which a worker hands parts of its task to children."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from executors.boundary import Raised, Returned, attempt, described
from executors.characters import sound
from executors.loop.worker import Guards
from executors.tools.base import Arguments, Tool, ToolContext, words_alone
from rlm.checks.verdict import Failed, NeedsRevision, status_of
from rlm.recursions.forest import Forest, Slot
from rlm.recursions.options import SPAWN
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, shown
from rlm.recursions.spec import Spec

__all__ = ["Brood"]

_READ: Final = Guards().result_characters
"""Characters of a child's answer that its parent reads: those of any result of a tool."""
_CRITIQUE: Final = 500  # characters of what a check said, as a parent reads them
_PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "subtask": {
            "type": "string",
            "description": "The whole subtask, with all that is needed to do it.",
        }
    },
    "required": ["subtask"],
    "additionalProperties": False,
}
_DESCRIPTION: Final = (
    "Hand one self-contained part of the task to a child, which works in a fresh context and "
    "returns its result. Several calls of one round run side by side."
)


@dataclass(slots=True)
class Brood:
    """The children of one worker, in the order in which it asked for them."""

    forest: Forest
    parent: Spec
    slot: Slot
    run: Callable[[Forest, Spec], Awaitable[NodeResult]]
    results: dict[int, tuple[Spec, NodeResult]] = field(
        default_factory=dict[int, tuple[Spec, NodeResult]]
    )
    refused: Blocked | None = None
    """A child that the cap of the tree left no room for."""

    @property
    def tool(self) -> Tool:
        """What the worker is offered."""
        return Tool(
            name=SPAWN,
            description=_DESCRIPTION,
            parameters=_PARAMETERS,
            execute=self._spawn,
            parallel=True,
            idempotent=True,
            replays=True,
            kind="spawn",
            judged=words_alone,
        )

    @property
    def in_order(self) -> list[tuple[Spec, NodeResult]]:
        """Each child that ended, with what it handed up."""
        return [self.results[index] for index in sorted(self.results)]

    async def _spawn(self, arguments: Arguments, context: ToolContext) -> str:
        del context
        subtask = sound(str(arguments.get("subtask", ""))).strip()
        if not subtask:
            return "error: subtask is empty; write the whole subtask into it"
        if " ".join(subtask.split()) == " ".join(self.parent.task.split()):
            return (
                "error: this is your own task as it stands; do it yourself, or hand on a part of it"
            )
        index = self.forest.claim(self.parent.node)
        child = self.parent.child(index, subtask)
        if not self.forest.admit(child):
            cap = self.forest.options.max_nodes
            self.refused = self.refused or Blocked(
                blocker="node-cap",
                detail=f"a model asked for more than {cap:,} node(s): raise max_nodes (--max-nodes)",
                node=child.node,
                task=subtask,
            )
            return f"error: the tree has its {cap:,} nodes; do the rest of the task yourself"
        # Until it has handed something up it counts as a child that did not: also where it raises.
        self.results[index] = child, _unended(child)
        async with self.slot.lent():
            got = await attempt(self.run, self.forest, child)
        match got:
            case Returned(value=Answered() | Short() as result):
                self.results[index] = child, result
                return self._cut(child, _told(result))
            case Raised(error=error):
                self.results[index] = child, _unended(child, f"it broke: {described(error)}")
                raise error
            case _:
                return "error: it did not come to an end"

    def _cut(self, child: Spec, told: str) -> str:
        """Say so where a parent cannot read all of what a child answered."""
        if len(told) > _READ:
            self.forest.note(
                f"the answer of {child.node} has {len(told):,} characters, of which its parent "
                f"read {_READ:,}"
            )
        return told


def _unended(child: Spec, detail: str = "it did not come to an end") -> Short:
    blocked = Blocked(blocker="failed", detail=detail, node=child.node, task=child.task)
    return Short(best=None, blocked=blocked, missing=(child.title,))


def _told(result: NodeResult) -> str:
    """Return what the parent reads of a child."""
    match result:
        case Answered(value=value, verdict=NeedsRevision() | Failed() as verdict):
            said = verdict.critique[:_CRITIQUE] or status_of(verdict)
            return f"[did not pass its check: {said}]\n{shown(value)}"
        case Answered(value=value):
            return shown(value)
        case Short(best=best, blocked=blocked):
            kept = "" if best is None else shown(best)
            if blocked.blocker in ("broken-sensor", "broken-verifier"):
                return (
                    f"[incomplete] the check of this subtask is broken ({blocked.detail}): another "
                    f"child would meet the same. Its work, unchecked:\n{kept}"
                )
            return f"[incomplete: {blocked.blocker}] {kept}".rstrip()
