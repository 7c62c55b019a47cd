"""What each node of a run did, over all of its sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from corpus.events import JudgeNoted, ScanStarted, WindowFinished
from executors.events import Event
from executors.ids import child_of
from rlm.events import (
    LeafTried,
    NodeFinished,
    NodeStarted,
    RunStarted,
    TaskAssessed,
    TaskEnded,
)
from rlm.receipts.totals import Totals

__all__ = ["NodeFold", "NodeReceipt", "TaskReceipt"]

_SNIPPETS = 5


@dataclass(slots=True, kw_only=True)
class TaskReceipt:
    """What a node of a task tree had to do, and how it ended; see the events for each field."""

    task: str
    depth: int
    level: str
    score: int
    family: str
    retrieval: str | None = None
    upgraded: bool = False
    why: str = ""
    verdict: str | None = None
    critique: str = ""
    blocker: str | None = None
    """This node's own fault; None where its task was done, or a node below it broke."""
    blocker_from: str | None = None
    """The fault of a node below."""
    detail: str = ""
    blocked_at: str | None = None
    shown: str = ""
    attempts: int | None = None
    """Of a leaf with a sensor."""
    passed: bool | None = None
    temperatures: tuple[float | None, ...] = ()
    rejected_buffer: bool = False


@dataclass(slots=True, kw_only=True)
class NodeReceipt:
    """What one node did, in all sessions that worked at it."""

    id: str
    """Where work of other sessions was another (another judge), theirs has an id with a `~`."""
    name: str
    started: datetime | None = None
    """For the first time."""
    finished: datetime | None = None
    """For the last time; where the process was killed, when it was last heard of."""
    worked: float | None = None
    """Seconds of all sessions together; None where an earlier version wrote the receipt."""
    sessions: tuple[int, ...] = ()
    """Those that worked at it."""
    error: str | None = None
    said: tuple[str, ...] = ()
    windows: int = 0
    """Each once, also where it was shown again for what was left of it."""
    items: int = 0
    """Parts shown in windows, each once."""
    unresolved: int = 0
    """Parts that are still unresolved after the last session that showed them."""
    foreign: int = 0
    """Answers for aliases that were never shown; dropped."""
    repaired: int = 0
    snippets: list[str] = field(default_factory=list[str])
    """Starts of replies that could not be read: distinct ones, at most five."""
    totals: Totals = field(default_factory=Totals)
    warnings: dict[str, int] = field(default_factory=dict[str, int])
    task: TaskReceipt | None = None
    """Of a node of a task tree."""

    @property
    def seconds(self) -> float | None:
        """How long was worked at it; None while it is open."""
        if self.started is None or self.finished is None:
            return None
        if self.worked is not None:
            return self.worked
        return (self.finished - self.started).total_seconds()

    @property
    def parent(self) -> str | None:
        """Id of the node above; None for the root."""
        return self.id.rpartition(".")[0] or None

    def of_task(self, event: TaskAssessed | LeafTried | TaskEnded) -> None:
        """Take what the task of this node was found to be, and how it ended."""
        match event:
            case TaskAssessed():
                self._assessed(event)
            case LeafTried():
                self._tried(event)
            case TaskEnded():
                self._ended(event)

    def _assessed(self, event: TaskAssessed) -> None:
        self.task = TaskReceipt(
            task=event.task,
            depth=event.depth,
            level=event.level,
            score=event.score,
            family=event.family,
            retrieval=event.retrieval,
            upgraded=event.upgraded,
            why=event.why,
        )

    def _tried(self, event: LeafTried) -> None:
        if (task := self.task) is not None:
            task.attempts, task.passed = event.attempts, event.passed
            task.temperatures = event.temperatures
            task.rejected_buffer = event.rejected_buffer

    def _ended(self, event: TaskEnded) -> None:
        if (task := self.task) is None:
            return
        own = event.blocked_at == event.node
        task.verdict, task.critique, task.shown = event.verdict, event.critique, event.shown
        task.blocker = event.blocker if own else None
        task.blocker_from = None if own else event.blocker
        task.detail, task.blocked_at = event.detail, event.blocked_at

    def took(self, seconds: float) -> None:
        """Add what one session worked at it."""
        self.worked = (self.worked or 0.0) + max(0.0, seconds)

    def noted(self, event: JudgeNoted) -> None:
        """Take what a judge noted."""
        self.foreign += event.foreign
        self.repaired += event.repaired
        kept = self.snippets
        if event.snippet and len(kept) < _SNIPPETS and event.snippet not in kept:
            kept.append(event.snippet)


@dataclass(slots=True, kw_only=True)
class _Left:
    """What windows have left unresolved."""

    items: int = 0
    windows: int = 0


class NodeFold:
    """Folds the events of nodes into their receipts.

    Attributes:
        last: when the last event was; set by who hands events on.
    """

    def __init__(self) -> None:
        self.last: datetime | None = None
        self._nodes: dict[str, NodeReceipt] = {}
        self._now: dict[str, str] = {}
        """By the id of a node in events: the receipt that its work goes to, where not its own."""
        self._places: dict[str, str] = {}
        self._open: dict[str, datetime] = {}
        """When the session began to work at what it works at."""
        self._left: dict[str, _Left] = {}
        self._owed: dict[str, _Left] = {}
        """What earlier sessions have left, and this one has not shown again yet."""
        self._session = 1

    def __iter__(self) -> Iterator[NodeReceipt]:
        """Yield the receipts: each parent before its children."""
        return iter(sorted(self._nodes.values(), key=_path))

    def place(self, node: str) -> str:
        """Return the id of the receipt that belongs to the node of an event."""
        found = self._places.get(node)
        if found is None:
            steps = node.split(".", 2)
            head = ".".join(steps[:2])
            found = self._places[node] = ".".join([self._now.get(head, head), *steps[2:]])
        return found

    def of(self, node: str) -> NodeReceipt:
        """Return the receipt that belongs to the node of an event."""
        place = self.place(node)
        found = self._nodes.get(place)
        if found is None:
            found = self._nodes[place] = NodeReceipt(id=place, name="")
        return found

    def begin(self, event: RunStarted) -> None:
        """Begin a session; what is open was ended by the death of its process."""
        self._session = event.session
        for place, since in self._open.items():
            node, last = self._nodes[place], self.last or since
            node.took((last - since).total_seconds())
            node.finished = last
        self._open.clear()
        self._owed = {
            place: _Left(items=left.items, windows=left.windows)
            for place, left in self._left.items()
        }

    def start(self, event: NodeStarted) -> None:
        """Begin to work at a node."""
        self._turn(event)
        node = self.of(event.node)
        node.name, node.finished, node.error = event.name, None, None
        node.started = node.started or event.at
        if self._session not in node.sessions:
            node.sessions = (*node.sessions, self._session)
        self._open[node.id] = event.at

    def finish(self, event: NodeFinished) -> None:
        """End it."""
        node = self.of(event.node)
        node.finished, node.said, node.error = event.at, event.said, event.error
        if (since := self._open.pop(node.id, None)) is not None:
            node.took((event.at - since).total_seconds())
        if event.error is None and (owed := self._owed.pop(node.id, None)) is not None:
            self._settle(node, owed)  # all was judged, and this was not there any more

    def window(self, event: WindowFinished) -> None:
        """Count a window; what an earlier session showed and left open is not counted again."""
        node = self.of(event.node)
        asked, again, counted = event.items - event.known, 0, True
        if (owed := self._owed.get(node.id)) is not None:
            again = min(asked, owed.items)
            counted = not owed.windows or not (again or event.known)
            owed.items -= again
            owed.windows -= not counted
        node.windows += counted
        node.items += asked - again
        node.unresolved += event.unresolved - again
        if event.unresolved or not counted:
            left = self._left.setdefault(node.id, _Left())
            left.items = node.unresolved
            left.windows += bool(event.unresolved) - (not counted)

    def found(self, event: ScanStarted) -> int:
        """Count what earlier sessions judged and did not tell, since they were killed.

        Returns how many verdicts these are.
        """
        untold = 0
        for pass_index, restored in enumerate(event.restored_in):
            id_ = child_of(event.node, pass_index)
            node = self._nodes.get(self.place(id_))
            told = 0 if node is None else node.items - node.unresolved
            if restored > told:
                node = self.of(id_)
                node.items += restored - told
                node.windows += -(-(restored - told) // max(1, event.window))
                untold += restored - told
        return untold

    def warn(self, event: Event, message: str, count: int) -> None:
        """Count a warning."""
        warnings = self.of(event.node).warnings
        warnings[message] = warnings.get(message, 0) + count

    def _settle(self, node: NodeReceipt, owed: _Left) -> None:
        node.items -= owed.items
        node.unresolved -= owed.items
        node.windows -= owed.windows
        left = self._left[node.id]
        left.items -= owed.items
        left.windows -= owed.windows

    def _turn(self, event: NodeStarted) -> None:
        """Give work a receipt of its own where a node does something else than before."""
        id_ = event.node
        if id_.count(".") != 1:
            return
        number, place = 1, str(id_)
        while (known := self._nodes.get(place)) is not None and known.name not in ("", event.name):
            number += 1
            place = f"{id_}~{number}"
        if place != self.place(id_):
            self._now[id_] = place
            self._places.clear()


def _path(node: NodeReceipt) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, step.split("~"))) for step in node.id.split(".")[1:])
