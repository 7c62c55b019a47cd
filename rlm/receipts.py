"""Receipts: what was done, by which node, at what cost. A fold over the events of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Self

from corpus.events import JudgeNoted, ScanStarted, SourceRead, WindowFinished
from executors.events import CallFailed, CallFinished, CallStarted, Event, Retried, Warned
from rlm.events import NodeFinished, NodeStarted, RecordForgotten, RunFinished, RunStarted
from rlm.sittings import SessionFold, SessionReceipt

__all__ = ["NodeReceipt", "ReceiptFold", "Receipts", "Totals"]

_SNIPPETS = 5


@dataclass(slots=True, kw_only=True)
class Totals:
    """What calls used. Unknown usage is counted in calls, never as zero tokens."""

    calls: int = 0
    """Answered and paid for."""
    attempts: int = 0
    """Requests sent for them and for those that failed."""
    shared: int = 0
    replayed: int = 0
    failed: int = 0
    possibly_paid: int = 0
    """Attempts without an answer that may have been billed; the budget was charged for them."""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    unmetered: int = 0
    """Paid calls of which the server reported no usage."""
    cost: Decimal = Decimal(0)
    """USD, over the calls whose price is known."""
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """All tokens that were reported."""
        return self.input + self.cache_read + self.cache_write + self.output

    def finished(self, event: CallFinished) -> None:
        """Count an answered call."""
        match event.source:
            case "shared":
                self.shared += 1
                return
            case "journal":
                self.replayed += 1
                return
            case _:
                self.calls += 1
        usage = event.usage
        self.attempts += event.attempts
        self.input += usage.input or 0
        self.cache_read += usage.cache_read or 0
        self.cache_write += usage.cache_write or 0
        self.output += usage.output or 0
        self.unmetered += usage.input is None or usage.output is None
        self.unpriced += event.cost is None
        self.cost += event.cost or 0

    def failed_call(self, event: CallFailed) -> None:
        """Count a call without an answer."""
        self.failed += 1
        self.attempts += event.attempts
        self.possibly_paid += event.possibly_paid

    def add(self, other: Totals) -> None:
        """Take in what others used."""
        for part in fields(Totals):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


@dataclass(slots=True, kw_only=True)
class NodeReceipt:
    """What one node did."""

    id: str
    name: str
    started: datetime | None = None
    finished: datetime | None = None
    error: str | None = None
    said: tuple[str, ...] = ()
    windows: int = 0
    items: int = 0
    """Parts shown in windows."""
    unresolved: int = 0
    """Parts that stayed unresolved."""
    foreign: int = 0
    """Answers for aliases that were never shown; dropped."""
    repaired: int = 0
    snippets: list[str] = field(default_factory=list[str])
    """Starts of replies that could not be read: distinct ones, at most five."""
    totals: Totals = field(default_factory=Totals)
    warnings: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it is open."""
        if self.started is None or self.finished is None:
            return None
        return (self.finished - self.started).total_seconds()

    @property
    def parent(self) -> str | None:
        """Id of the node above; None for the root."""
        return self.id.rpartition(".")[0] or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """The receipt of a run, as it stands in `receipt.json` of its directory."""

    run: str
    task: str
    version: str
    options: Mapping[str, str]
    source: Mapping[str, str]
    """What was read: its name, its columns as they were chosen, and the hash of its contents."""
    blocker: str | None
    nodes: tuple[NodeReceipt, ...]
    """In order of their ids: each parent before its children."""
    totals: Totals
    roles: Mapping[str, Totals]
    """Totals by the role of the call: worker, planner, judge, verifier, …"""
    models: tuple[str, ...]
    directory: Path
    result: Mapping[str, object]
    """The result in numbers, as written to the file."""
    temperatures: tuple[float | None, ...] = ()
    """At which the calls were answered; None where none was sent and the server's own held."""
    content_root: str | None = None
    """Hash over the result, the same however it came about; None where there is no result."""
    log_root: str | None = None
    """Hash over the lines of the log, in their order, up to the end of the last session."""
    sessions: tuple[SessionReceipt, ...] = ()
    """In their order; the totals are those of all of them."""
    forgotten: int = 0
    """Records whose texts were erased on request; they count as left out."""

    def __repr__(self) -> str:
        ended = "" if self.blocker is None else f", blocker={self.blocker!r}"
        return (
            f"Receipts(run={self.run!r}, calls={self.totals.calls}{ended}, path={str(self.path)!r})"
        )

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / "receipt.json"

    def children(self, parent: str) -> tuple[NodeReceipt, ...]:
        """Return the nodes directly below one."""
        return tuple(node for node in self.nodes if node.parent == parent)

    def to_json(self) -> str:
        """Return the receipt as indented JSON."""
        # pydantic is heavy and only files need it.
        from pydantic import TypeAdapter

        return TypeAdapter(Receipts).dump_json(self, indent=2, exclude={"directory"}).decode()

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the receipt of a run directory.

        Raises:
            FileNotFoundError: it holds none.
        """
        import orjson
        from pydantic import TypeAdapter

        raw = orjson.loads((directory / "receipt.json").read_bytes())
        return TypeAdapter(cls).validate_python({**raw, "directory": directory})


class ReceiptFold:
    """Folds events into receipts; holds totals and spans only."""

    def __init__(self) -> None:
        self._run: RunStarted | None = None
        self._source: dict[str, str] = {}
        self._blocker: str | None = None
        self._nodes: dict[str, NodeReceipt] = {}
        self._totals: dict[tuple[str, str | None], Totals] = {}
        """By node and role of the call: so that a call is counted once, and summed at the end."""
        self._models: set[str] = set()
        self._temperatures: set[float | None] = set()
        self._sessions = SessionFold()
        self._forgotten = 0

    def __call__(self, event: Event) -> None:
        """Take one event."""
        match event:  # what comes with every call stands first
            case CallStarted():
                pass
            case CallFinished() | CallFailed() | Retried():
                self._call(event)
            case WindowFinished():
                node = self._node(event)
                node.windows += 1
                node.items += event.items
                node.unresolved += event.unresolved
                self._sessions.window(event)
            case ScanStarted():
                self._sessions.scan(event)
            case JudgeNoted():
                self._noted(event)
            case NodeStarted():
                node = self._node(event)
                node.name, node.started = event.name, event.at
                node.finished = node.error = None
            case NodeFinished():
                node = self._node(event)
                node.finished, node.said, node.error = event.at, event.said, event.error
            case Warned():
                node = self._node(event)
                node.warnings[event.message] = node.warnings.get(event.message, 0) + event.count
            case RunStarted() | RunFinished() | SourceRead() | RecordForgotten():
                self._whole(event)
            case _:
                node = self._node(event)
                node.warnings[f"unknown event {event.kind!r}"] = 1

    def _whole(self, event: RunStarted | RunFinished | SourceRead | RecordForgotten) -> None:
        """Take what is about the run as a whole."""
        match event:
            case SourceRead():
                self._source = {
                    "name": event.source,
                    "records": str(event.records),
                    "columns": "; ".join(event.said),
                    "fingerprint": event.fingerprint,
                }
            case RunStarted():
                self._run = event
                self._sessions.start(event)
            case RunFinished():
                self._blocker = event.blocker
                self._sessions.finish(event)
            case RecordForgotten():
                self._forgotten = max(self._forgotten, event.number)

    def receipts(
        self,
        directory: Path,
        result: Mapping[str, object],
        *,
        content_root: str | None = None,
        log_root: str | None = None,
    ) -> Receipts:
        """Return the receipts as of now."""
        run = self._run
        totals = Totals()
        nodes, roles = defaultdict[str, Totals](Totals), defaultdict[str, Totals](Totals)
        for (node, role), some in self._totals.items():
            totals.add(some)
            nodes[node].add(some)
            if role is not None:
                roles[role].add(some)
        return Receipts(
            run=run.run if run else "",
            task=run.task if run else "",
            version=run.version if run else "",
            options=run.options if run else {},
            source=dict(self._source),
            blocker=self._blocker,
            nodes=tuple(
                replace(node, totals=nodes[node.id])
                for node in sorted(self._nodes.values(), key=_path)
            ),
            totals=totals,
            roles=dict(roles),
            models=tuple(sorted(self._models)),
            directory=directory,
            result=result,
            temperatures=tuple(sorted(self._temperatures, key=lambda t: -1.0 if t is None else t)),
            content_root=content_root,
            log_root=log_root,
            sessions=self._sessions.sessions,
            forgotten=self._forgotten,
        )

    def _totals_of(self, event: Event, role: str | None) -> Totals:
        found = self._totals.get((event.node, role))
        if found is None:
            self._node(event)
            found = self._totals[event.node, role] = Totals()
        return found

    def _node(self, event: Event) -> NodeReceipt:
        found = self._nodes.get(event.node)
        if found is None:
            found = self._nodes[event.node] = NodeReceipt(id=event.node, name="")
        return found

    def _noted(self, event: JudgeNoted) -> None:
        node = self._node(event)
        node.foreign += event.foreign
        node.repaired += event.repaired
        kept = node.snippets
        if event.snippet and len(kept) < _SNIPPETS and event.snippet not in kept:
            kept.append(event.snippet)

    def _call(self, event: CallFinished | CallFailed | Retried) -> None:
        match event:
            case CallFinished():
                self._models.add(event.model)
                self._temperatures.add(event.temperature)
                self._totals_of(event, event.role).finished(event)
                self._sessions.call(event)
            case CallFailed():
                self._models.add(event.model)
                self._totals_of(event, event.role).failed_call(event)
                self._sessions.call(event)
            case Retried():
                self._totals_of(event, None).possibly_paid += event.possibly_paid


def _path(node: NodeReceipt) -> tuple[int, ...]:
    return tuple(int(step) for step in node.id.split(".")[1:])
