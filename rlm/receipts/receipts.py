"""Receipts: what was done, by which node, at what cost. A fold over the events of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.events import JudgeNoted, ScanStarted, SourceRead, WindowFinished
from executors.characters import sound
from executors.events import (
    CallFailed,
    CallFinished,
    CallStarted,
    Event,
    ModelMet,
    Retried,
    ToolFinished,
    ToolStarted,
    Warned,
)
from rlm.events import (
    LeafTried,
    NodeFinished,
    NodeStarted,
    RecordForgotten,
    RunFinished,
    RunStarted,
    TaskAssessed,
    TaskEnded,
)
from rlm.receipts.nodes import NodeFold, NodeReceipt, TaskReceipt
from rlm.receipts.sent import SentFold, SentReceipt
from rlm.receipts.sittings import SessionFold, SessionReceipt
from rlm.receipts.totals import Totals

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["NodeReceipt", "ReceiptFold", "Receipts", "SentReceipt", "TaskReceipt", "Totals"]


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
    server: str = ""
    """scheme://host:port of the server that judged; "" where it is the vendor's own, or none."""
    sent: tuple[SentReceipt, ...] | None = None
    """Which servers on other machines models were asked on, and what they were sent; none where no model
    elsewhere was asked. None in receipts of versions that did not tell."""
    tools: tuple[str, ...] = ()
    """Tools that ran; what they sent anywhere is not known here."""

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
        try:
            return _adapter().dump_json(self, indent=2, exclude={"directory"}).decode()
        except ValueError:  # it writes UTF-8, which has no lone surrogates
            plain = _adapter().dump_python(self, mode="json", exclude={"directory"})
            return sound(json.dumps(plain, indent=2, ensure_ascii=False))

    @staticmethod
    def load(directory: Path) -> Receipts:
        """Read the receipt of a run directory.

        Raises:
            FileNotFoundError: it holds none.
        """
        import orjson

        raw = orjson.loads((directory / "receipt.json").read_bytes())
        return _adapter().validate_python({**raw, "directory": directory})


@cache
def _adapter() -> TypeAdapter[Receipts]:
    # pydantic is heavy and only files need it; to build what reads and writes them takes it longest.
    from pydantic import TypeAdapter

    return TypeAdapter(Receipts)


class ReceiptFold:
    """Folds events into receipts; holds totals and spans only."""

    def __init__(self) -> None:
        self._run: RunStarted | None = None
        self._source: dict[str, str] = {}
        self._blocker: str | None = None
        self._nodes = NodeFold()
        self._totals: dict[tuple[str, str | None], Totals] = {}
        """By node and role of the call: so that a call is counted once, and summed at the end."""
        self._models: set[str] = set()
        self._temperatures: set[float | None] = set()
        self._sessions = SessionFold()
        self._forgotten = 0
        self._server = ""
        self._sent = SentFold()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._take(event)
        self._nodes.last = event.at

    def _take(self, event: Event) -> None:
        match event:  # what comes with every call stands first
            case CallStarted() | ToolStarted():
                pass
            case CallFinished() | CallFailed() | Retried():
                self._call(event)
            case WindowFinished():
                self._nodes.window(event)
                self._sessions.window(event)
            case ScanStarted():
                self._server = event.server
                self._sessions.scan(event, untold=self._nodes.found(event))
            case JudgeNoted():
                self._nodes.of(event.node).noted(event)
            case TaskAssessed() | LeafTried() | TaskEnded():
                self._sessions.work()
                self._nodes.of(event.node).of_task(event)
            case NodeStarted():
                self._nodes.start(event)
            case NodeFinished():
                self._nodes.finish(event)
            case RunStarted() | RunFinished() | SourceRead() | RecordForgotten():
                self._whole(event)
            case ModelMet() | ToolFinished():
                self._sent.take(event)
            case _:
                self._warned(event)

    def _warned(self, event: Event) -> None:
        match event:
            case Warned():
                self._nodes.warn(event, event.message, event.count)
            case _:
                self._nodes.of(event.node).warnings[f"unknown event {event.kind!r}"] = 1

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
                self._nodes.begin(event)
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
            nodes=tuple(replace(node, totals=nodes[node.id]) for node in self._nodes),
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
            server=self._server,
            sent=self._sent.receipts({node.id: node.items for node in self._nodes}),
            tools=self._sent.tools,
        )

    def _totals_of(self, event: Event, role: str | None) -> Totals:
        place = self._nodes.place(event.node)
        found = self._totals.get((place, role))
        if found is None:
            self._nodes.of(event.node)
            found = self._totals[place, role] = Totals()
        return found

    def _call(self, event: CallFinished | CallFailed | Retried) -> None:
        match event:
            case CallFinished():
                self._models.add(event.model)
                if event.answered_by is not None:
                    self._models.add(event.answered_by)
                self._temperatures.add(event.temperature)
                self._totals_of(event, event.role).finished(event)
                self._sessions.call(event)
                self._sent.call(event, self._nodes.place(event.node))
            case CallFailed():
                self._models.add(event.model)
                self._totals_of(event, event.role).failed_call(event)
                self._sessions.call(event)
                self._sent.call(event, self._nodes.place(event.node))
            case Retried():
                self._totals_of(event, None).retried(event)
