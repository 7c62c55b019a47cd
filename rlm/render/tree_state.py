"""A task tree as people watch it: a fold over events, or over the receipt of a run that ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from corpus.events import ScanStarted, WindowFinished
from executors.events import CallFailed, CallFinished, Event, ToolFinished, ToolStarted, Warned
from rlm.events import LeafTried, NodeFinished, NodeStarted, TaskAssessed, TaskEnded

__all__ = ["Branch", "BranchState", "TreeState"]

BranchState = Literal["working", "done", "incomplete", "stopped"]
"""How a node stands: "stopped" ended early without a word of its own."""
ROOT: Final = "root"
_NOTES: Final = 20


@dataclass(slots=True, kw_only=True)
class Branch:
    """One node, as far as it is shown."""

    id: str
    name: str = ""
    state: BranchState = "working"
    open: bool = False
    """It began, and has not ended since."""
    started: datetime | None = None
    finished: datetime | None = None
    worked: float | None = None
    """Seconds, where a receipt says them; else they are those between start and end."""
    calls: int = 0
    failed: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    done: int = 0
    """Records read, once a pass."""
    total: int | None = None
    """Of what is to be read; None where the node scans nothing."""
    unresolved: int = 0
    doing: str = ""
    """The tool that its worker runs."""
    verdict: str | None = None
    blocker: str | None = None
    blocked_at: str | None = None
    """The node that broke: this one, or one below."""
    details: list[str] = field(default_factory=list[str])
    children: list[Branch] = field(default_factory=list["Branch"])
    working: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of children at work, in the order in which they began."""
    broken: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of children that did not come to their end."""

    @property
    def number(self) -> int:
        """Its place among its siblings, from 0; work of another session may have a `~` in its id."""
        return int(self.id.rpartition(".")[2].partition("~")[0] or 0) if "." in self.id else 0

    def note(self, said: str) -> None:
        """Keep a sentence about it, once; of many the first ones."""
        if len(self.details) < _NOTES and said not in self.details:
            self.details.append(said)

    def seconds(self, now: datetime | None) -> float | None:
        """Return how long it works or worked; None where nobody knows."""
        if self.worked is not None:
            return self.worked
        end = self.finished or now
        if self.started is None or end is None:
            return None
        return max(0.0, (end - self.started).total_seconds())


class TreeState:
    """Folds events into branches; what a scan does below its node counts for the node."""

    def __init__(self) -> None:
        self.branches: dict[str, Branch] = {}
        self.calls = self.failed = self.tokens = self.unpriced = 0
        self.cost = Decimal(0)
        self.ended = 0
        """Nodes that came to an end, whatever it was."""

    @property
    def root(self) -> Branch:
        """The node at the top."""
        return self.of(ROOT)

    def of(self, id_: str) -> Branch:
        """Return the branch of a node; made, with those above it, where it is not there."""
        found = self.branches.get(id_)
        if found is not None:
            return found
        parent = None if id_ == ROOT or "." not in id_ else self.of(id_.rpartition(".")[0])
        if parent is not None and parent.total is not None:
            return parent  # a pass of its scan
        found = self.branches[id_] = Branch(id=id_)
        if parent is not None:
            parent.children.append(found)
            parent.working[id_] = None
        return found

    def parent(self, branch: Branch) -> Branch | None:
        """Return the branch above; None for the root."""
        return self.branches.get(branch.id.rpartition(".")[0])

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:
            case CallFinished() | CallFailed():
                self._call(event)
            case WindowFinished():
                branch = self.of(event.node)
                branch.done += event.items
                branch.unresolved += event.unresolved
            case NodeStarted():
                self._start(event)
            case NodeFinished():
                self._finish(event)
            case ScanStarted():
                branch = self.of(event.node)
                branch.total = (branch.total or 0) + event.items * event.passes - event.restored
            case ToolStarted():
                self.of(event.node).doing = event.tool
            case ToolFinished():
                self.of(event.node).doing = ""
            case _:
                self._told(event)

    def _start(self, event: NodeStarted) -> None:
        branch = self.of(event.node)
        if branch.id != event.node:
            return
        if branch.finished is not None and not branch.open:  # worked at once more
            self.ended -= 1
            branch.finished = None
        branch.name, branch.open = event.name, True
        branch.started = branch.started or event.at

    def _finish(self, event: NodeFinished) -> None:
        branch = self.of(event.node)
        if branch.id != event.node:
            return
        branch.finished, branch.doing = event.at, ""
        if branch.state == "working":
            branch.state = "done" if event.error is None else "stopped"
        for said in event.said:
            branch.note(said)
        self.settle(branch)

    def settle(self, branch: Branch) -> None:
        """Take a branch as ended."""
        self.ended += branch.open
        branch.open = False
        above = self.parent(branch)
        if above is not None:
            above.working.pop(branch.id, None)
            if branch.state in ("incomplete", "stopped"):
                above.broken[branch.id] = None

    def _told(self, event: Event) -> None:
        match event:
            case TaskAssessed(node=node, retrieval=retrieval, upgraded=upgraded, why=why):
                if upgraded:
                    self.of(node).note(f"{retrieval}: {why}")
            case TaskEnded():
                branch = self.of(event.node)
                branch.verdict, branch.blocker = event.verdict, event.blocker
                branch.blocked_at = event.blocked_at
                branch.state = "done" if event.blocker is None else "incomplete"
                if event.blocker is not None and event.blocked_at == event.node and event.detail:
                    branch.note(event.detail)
            case LeafTried(node=node, attempts=attempts, passed=passed):
                if attempts > 1 or not passed:
                    said = "the sensor holds" if passed else "the sensor does not hold"
                    times = "1 try" if attempts == 1 else f"{attempts} tries"
                    self.of(node).note(f"{said} after {times}")
            case Warned():
                self.of(event.node).note(event.message)
            case _:
                pass

    def _call(self, event: CallFinished | CallFailed) -> None:
        branch = self.of(event.node)
        if isinstance(event, CallFailed):
            branch.failed += 1
            self.failed += 1
            return
        if event.source != "paid":
            return
        usage = event.usage
        tokens = sum(
            part or 0 for part in (usage.input, usage.output, usage.cache_read, usage.cache_write)
        )
        for held in (branch, self):
            held.calls += 1
            held.tokens += tokens
            held.unpriced += event.cost is None
            held.cost += event.cost or 0
