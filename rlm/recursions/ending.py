"""How a run of `recurse` ends: in one outcome, and in a receipt that says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypeAlias

from corpus.criterion import Criterion
from corpus.questions import YesNo
from corpus.results import Tally
from corpus.tally_file import save_tally
from executors.clock import Clock
from executors.errors import DiskFault, Halted
from executors.ids import NodeId, content_key
from executors.secrets import scrub
from rlm.checks.verdict import status_of
from rlm.outcome import Blocker, Completed, Incomplete
from rlm.receipts.receipts import Receipts
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, shown
from rlm.runs.home import write_atomically
from rlm.runs.log import ROOT, RunLog
from rlm.runs.merkle import MerkleTree, sized
from rlm.runs.raising import told_how
from rlm.runs.roots import result_root
from rlm.runs.session import Session
from rlm.summary import summarise

__all__ = ["RESULT", "Ending", "RecurseOutcome", "read_result", "root_of", "summary_of"]

RecurseOutcome: TypeAlias = Completed[object] | Incomplete[object]
RESULT: Final = "result.json"
_BEGINNING: Final = 2_000
_FORMAT: Final = b"rlm recursion 1"


class Ending:
    """Ends a session once, in its outcome."""

    def __init__(self, session: Session, log: RunLog, task: str, clock: Clock) -> None:
        self._session = session
        self._log = log
        self._task = task
        self._clock = clock

    def of(
        self, result: NodeResult, notes: tuple[str, ...], halted: Halted | None = None
    ) -> RecurseOutcome:
        """Return the outcome of what the root handed up.

        Args:
            halted: what stopped the tree, where something did.
        """
        match result:
            case Answered(value=value, verdict=verdict):
                said = None if verdict is None else status_of(verdict)
                receipts = self.finish(None, value, notes, verdict=said)
                if (fault := self._log.fault) is not None:
                    return self._unwritten(value, fault, receipts)
                return Completed(result=value, receipts=receipts, verdict=verdict)
            case Short(best=best, blocked=blocked, missing=missing):
                receipts = self.finish(blocked.blocker, best, notes, blocked=blocked)
                return Incomplete(
                    best=best,
                    missing=(_sentence(blocked), *missing, *self._hint(halted)),
                    blocker=blocked.blocker,
                    receipts=receipts,
                    node=blocked.node,
                    detail=blocked.detail,
                )

    def _hint(self, halted: Halted | None) -> tuple[str, ...]:
        """Return what to do about a halt."""
        if halted is None:
            return ()
        audit = self._session.manifest.objects.get("synthesize") == "audit_union"
        hint = told_how(halted, self._log.directory, audit=audit).hint
        return () if hint is None else (hint,)

    def finish(
        self,
        blocker: Blocker | None,
        value: object | None,
        notes: tuple[str, ...],
        *,
        verdict: str | None = None,
        blocked: Blocked | None = None,
    ) -> Receipts:
        """End the session in its receipt and in the manifest."""
        directory = self._log.directory
        with self._log.writing("the result"):
            if isinstance(value, Tally):
                save_tally(value, directory / "verdicts")
            write_atomically(directory / RESULT, _file(value, whole=blocker is None))
        root = root_of(self._task, value)
        result = {**summary_of(value), "verdict": verdict, "notes": list(notes)}
        if blocked is not None:
            result |= {"node": blocked.node, "detail": scrub(blocked.detail)}
        receipts = self._log.finish(blocker, result, content_root=root)
        with self._log.writing("the manifest"):
            self._session.end(self._clock.now(), blocker=blocker, content_root=root)
        return receipts

    def _unwritten(self, value: object, fault: DiskFault, receipts: Receipts) -> RecurseOutcome:
        lines = [line for line in (fault.what, fault.where, fault.hint) if line]
        return Incomplete(
            best=value,
            missing=tuple(lines),
            blocker="disk",
            receipts=receipts,
            node=ROOT,
            detail=fault.what,
        )


def read_result(directory: Path) -> object | None:
    """Return the value that a run left; None where it left none."""
    try:
        found: object = json.loads((directory / RESULT).read_text(encoding="utf-8"))["value"]
    except (OSError, ValueError, LookupError):
        return None
    return found


def _sentence(blocked: Blocked) -> str:
    return f"{blocked.blocker} at {blocked.node}: {blocked.detail}"


def _file(value: object | None, *, whole: bool) -> str:
    held = summarise(value) if isinstance(value, Tally) else value
    try:
        return json.dumps({"whole": whole, "value": held}, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError):  # an object of the caller's own synthesis
        return json.dumps({"whole": whole, "value": shown(value)}, indent=2) + "\n"


def summary_of(value: object | None) -> dict[str, object]:
    """Return a result as receipts have it: a count by its numbers, a text by its beginning."""
    if isinstance(value, Tally):
        return summarise(value)
    if value is None:
        return {"kind": "nothing"}
    text = shown(value)
    kind = "text" if isinstance(value, str) else "value"
    return {"kind": kind, "characters": len(text), "text": scrub(text[:_BEGINNING])}


def root_of(task: str, value: object | None) -> str | None:
    """Return the hash over task and result, the same however it came about."""
    if value is None:
        return None
    if isinstance(value, Tally):
        return result_root(value, Criterion(question=YesNo(text=task)))
    tree = MerkleTree()
    tree.add(b"question" + sized(_FORMAT, content_key(task)))
    tree.add(b"node" + sized(NodeId("root"), shown(value)))
    return tree.root()
