"""The log of one run: its directory, its events, and the receipt that is folded from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from executors.clock import Clock
from executors.errors import DiskFault, RlmError, RunDirError
from executors.events import CallFailed, CallFinished, Event, Warned
from executors.ids import ContentKey, NodeId, RunId
from executors.journal.answers import answers
from executors.journal.records import Paid
from executors.messages import CallRole, ModelReply
from executors.secrets import scrub
from rlm._version import __version__
from rlm.events import EventLog, NodeFinished, NodeStarted, RunFinished, RunStarted
from rlm.outcome import Blocker
from rlm.receipts.receipts import ReceiptFold, Receipts
from rlm.receipts.totals import LOST
from rlm.runs.home import write_atomically
from rlm.runs.roots import log_root

if TYPE_CHECKING:
    from executors.journal.index import Lost
    from executors.journal.journal import RunJournal

__all__ = ["ROOT", "ModelWarnings", "RunLog"]

ROOT = NodeId("root")


class RunLog:
    """Writes what happens and folds it; ends in exactly one receipt.

    Args:
        directory: of the run; made already.
        on_event: hears each event at once, until it raises.
    """

    def __init__(
        self, directory: Path, *, clock: Clock, on_event: Callable[[Event], None] | None
    ) -> None:
        self.directory = directory
        self._clock = clock
        self._fold = ReceiptFold()
        self._fault: DiskFault | None = None
        self._cut_off = False
        """The log of the last session has no end."""
        self._told: Counter[str] = Counter()
        """How often answers and losses of calls were told, by key."""
        path = directory / "events.jsonl"
        try:
            if path.exists():
                self._remember(path)
            self.emit = EventLog(path, self._fold, guest=on_event)
        except OSError as error:
            raise RunDirError(
                f"the events of the run cannot be read and written: {error.strerror or error}",
                where=str(path),
                hint="make room, or name a run directory that you may read and write",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.emit.__exit__(kind, error, trace)

    def _remember(self, path: Path) -> None:
        """Fold what earlier sessions told; what was cut off in the middle of a line is lost."""
        # Reading events back needs pydantic; a first session has nothing to read.
        from rlm.runs.history import cut_torn_tail, read_events

        cut_torn_tail(path)
        for event in read_events(path):
            self._fold(event)
            match event:
                case RunStarted():
                    self._cut_off = True
                case RunFinished():
                    self._cut_off = False
                case CallFinished(source="paid"):
                    self._told[event.key] += 1
                case CallFailed(error=error) if error == LOST:
                    self._told[_lost_key(event.key)] += 1
                case _:
                    pass

    def recover(
        self, journal: RunJournal, *, node: NodeId, model: str, role: CallRole = "judge"
    ) -> None:
        """Tell what the journal knows of the last session and its own log does not.

        A process that is killed takes the end of its log with it. Of its calls nothing is lost:
        those that were answered stand in the journal, and those that left and of which nothing is
        known are told as possibly paid.
        """
        if self._cut_off:
            for key, reply, paid in answers(self.directory):
                if not self._was_told(key):
                    self.recovered(key, reply, paid, node=node, model=model, role=role)
        for lost in journal.lost:
            if not self._was_told(_lost_key(lost.key)):
                self.lost(lost, node=node, model=model, role=role)
        self._told.clear()

    def _was_told(self, key: str) -> bool:
        """Whether one more of these was told than was asked about before."""
        self._told[key] -= 1
        return self._told[key] >= 0

    def recovered(
        self,
        key: ContentKey,
        reply: ModelReply,
        paid: Paid,
        *,
        node: NodeId,
        model: str,
        role: CallRole = "judge",
    ) -> None:
        """Tell an answer that stands in the journal, and whose process could not tell it.

        Args:
            role: of the calls of this run, where it has one; the journal does not say.
        """
        at = self._clock.now()
        self.emit(_recovered(key, reply, paid, node=node, at=at, model=model, role=role))

    def lost(self, lost: Lost, *, node: NodeId, model: str, role: CallRole = "judge") -> None:
        """Tell a call that left a process which has ended, and of which nothing is known."""
        self.emit(_lost(lost, node=node, at=self._clock.now(), model=model, role=role))

    def start(
        self, run: RunId, *, session: int, name: str, task: str, options: Mapping[str, str]
    ) -> None:
        """Say what was asked for, and begin the root."""
        now = self._clock.now()
        self.emit(
            RunStarted(
                node=ROOT,
                at=now,
                run=run,
                session=session,
                task=scrub(task),
                options={option: scrub(value) for option, value in options.items()},
                version=__version__,
            )
        )
        self.emit(NodeStarted(node=ROOT, at=now, name=name))
        # At once: a session that is killed must be known to have begun, or nobody looks in its journal
        # for what it could not tell.
        self.emit.flush()

    def warn(self, node: NodeId, code: str, message: str, count: int = 1) -> None:
        """Note something that the reader of the result has to know."""
        said = scrub(message)
        self.emit(Warned(node=node, at=self._clock.now(), code=code, message=said, count=count))

    @contextmanager
    def node(self, node: NodeId, name: str) -> Generator[list[str]]:
        """Emit the start and the end of a node around its work; yields what it will have said."""
        said: list[str] = []
        self.emit(NodeStarted(node=node, at=self._clock.now(), name=name))
        try:
            yield said
        except BaseException as error:
            code = error.code if isinstance(error, RlmError) else type(error).__name__
            self.emit(NodeFinished(node=node, at=self._clock.now(), error=code))
            raise
        self.emit(NodeFinished(node=node, at=self._clock.now(), said=tuple(said)))

    def finish(
        self,
        blocker: Blocker | None,
        result: Mapping[str, object],
        *,
        content_root: str | None = None,
    ) -> Receipts:
        """End the root and the run, and write the receipt."""
        now = self._clock.now()
        self.emit(NodeFinished(node=ROOT, at=now, error=blocker))
        self.emit(RunFinished(node=ROOT, at=now, blocker=blocker))
        self.emit.flush()
        receipts = self._fold.receipts(
            self.directory,
            result,
            content_root=content_root,
            log_root=log_root(self.directory / "events.jsonl"),
        )
        with self.writing("the receipt"):
            write_atomically(receipts.path, receipts.to_json())
        return receipts

    @contextmanager
    def writing(self, what: str) -> Generator[None]:
        """Keep in `fault` that something of the run could not be written, and go on."""
        try:
            yield
        except OSError as error:
            self._fault = DiskFault(
                f"{what} of the run cannot be written: {error.strerror or error}",
                where=str(error.filename or self.directory),
            )

    @property
    def fault(self) -> DiskFault | None:
        """Why what is on the disk is not the whole; None while it is."""
        return self._fault or self.emit.fault


def _lost_key(key: str) -> str:
    return f"{LOST} {key}"


def _recovered(
    key: ContentKey,
    reply: ModelReply,
    paid: Paid,
    *,
    node: NodeId,
    at: datetime,
    model: str,
    role: CallRole,
) -> CallFinished:
    return CallFinished(
        node=node,
        at=at,
        key=key,
        role=role,
        model=model,
        stop=reply.stop,
        usage=reply.usage,
        cost=paid.usd,
        attempts=paid.attempts,
        seconds=0.0,
        source="paid",
        temperature=reply.temperature,
        answered_by=reply.answered_by,
    )


def _lost(lost: Lost, *, node: NodeId, at: datetime, model: str, role: CallRole) -> CallFailed:
    return CallFailed(
        node=node,
        at=at,
        key=lost.key,
        role=role,
        model=model,
        error=LOST,
        message="the process ended while this call was in flight",
        attempts=1,
        seconds=0.0,
        possibly_paid=True,
        worst_tokens=lost.tokens,
        worst_usd=lost.usd,
    )


class ModelWarnings:
    """What models warn of, for the log of their run; kept until the run has one."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._log: RunLog | None = None

    def __call__(self, message: str) -> None:
        """Take one warning."""
        if self._log is None:
            self._kept.append(message)
        else:
            self._log.warn(ROOT, "model", message)

    def go_to(self, log: RunLog) -> None:
        """Send what was kept, and all that follows, to a log."""
        self._log = log
        for message in self._kept:
            self(message)
        self._kept.clear()
