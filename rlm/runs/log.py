"""The log of one run: its directory, its events, and the receipt that is folded from them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from executors.clock import Clock
from executors.errors import RlmError
from executors.events import Event, Warned
from executors.ids import NodeId, RunId
from rlm._version import __version__
from rlm.events import EventLog, NodeFinished, NodeStarted, RunFinished, RunStarted
from rlm.outcome import Blocker
from rlm.receipts import ReceiptFold, Receipts
from rlm.runs.home import write_atomically

__all__ = ["ROOT", "ModelWarnings", "RunLog"]

ROOT = NodeId("root")


class RunLog:
    """Writes what happens and folds it; ends in exactly one receipt.

    Args:
        directory: of the run; made already.
        on_event: hears each event after it was written, until it raises.
    """

    def __init__(
        self, directory: Path, *, clock: Clock, on_event: Callable[[Event], None] | None
    ) -> None:
        self.directory = directory
        self._clock = clock
        self._fold = ReceiptFold()
        self.emit = EventLog(directory / "events.jsonl", self._fold, guest=on_event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.emit.__exit__(kind, error, trace)

    def start(self, run: RunId, *, name: str, task: str, options: Mapping[str, str]) -> None:
        """Say what was asked for, and begin the root."""
        now = self._clock.now()
        self.emit(
            RunStarted(
                node=ROOT, at=now, run=run, task=task, options=dict(options), version=__version__
            )
        )
        self.emit(NodeStarted(node=ROOT, at=now, name=name))

    def warn(self, node: NodeId, code: str, message: str, count: int = 1) -> None:
        """Note something that the reader of the result has to know."""
        self.emit(Warned(node=node, at=self._clock.now(), code=code, message=message, count=count))

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

    def finish(self, blocker: Blocker | None, result: Mapping[str, object]) -> Receipts:
        """End the root and the run, and write the receipt."""
        now = self._clock.now()
        self.emit(NodeFinished(node=ROOT, at=now, error=blocker))
        self.emit(RunFinished(node=ROOT, at=now, blocker=blocker))
        self.emit.flush()
        receipts = self._fold.receipts(self.directory, result)
        write_atomically(receipts.path, receipts.to_json())
        return receipts

    def discard(self, *, remove: bool) -> None:
        """Take back the directory of a run that never began to spend.

        Args:
            remove: the directory too, since nobody but us named it.
        """
        if remove:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for entry in self.directory.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


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
