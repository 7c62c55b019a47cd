"""Sessions of a run: what each of them paid, judged, and took over from those before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from corpus.events import ScanStarted, WindowFinished
from executors.events import CallFailed, CallFinished
from rlm.events import RunFinished, RunStarted
from rlm.receipts.totals import LOST

__all__ = ["SessionFold", "SessionReceipt"]


@dataclass(slots=True, kw_only=True)
class SessionReceipt:
    """What one session of a run did."""

    number: int
    """From 1."""
    version: str
    started: datetime
    ended: datetime | None = None
    """None where the process was killed."""
    blocker: str | None = None
    """Why it could not complete; None where it did, and where it was killed."""
    calls: int = 0
    """Answered and paid for."""
    lost: int = 0
    """In flight when the process died: possibly paid."""
    verdicts: int = 0
    """Made, of records or of parts of them, in each pass."""
    taken_over: int = 0
    """Verdicts that it found: they were made by earlier sessions, in windows of theirs."""

    @property
    def seconds(self) -> float | None:
        """How long it took; None where nobody knows."""
        return None if self.ended is None else (self.ended - self.started).total_seconds()


class SessionFold:
    """Folds the events of all sessions of a run, in their order."""

    def __init__(self) -> None:
        self._sessions: list[SessionReceipt] = []
        self._working = False

    @property
    def sessions(self) -> tuple[SessionReceipt, ...]:
        """The sessions so far."""
        return tuple(self._sessions)

    def start(self, event: RunStarted) -> None:
        """Begin a session."""
        self._working = False
        while self._sessions and self._sessions[-1].number >= event.session:
            self._sessions.pop()  # taken back: it was refused before it began to spend
        self._sessions.append(
            SessionReceipt(number=event.session, version=event.version, started=event.at)
        )

    def finish(self, event: RunFinished) -> None:
        """End it."""
        if self._sessions:
            self._sessions[-1].ended, self._sessions[-1].blocker = event.at, event.blocker

    def work(self) -> None:
        """Begin the work itself; what was told until now was left over from the session before."""
        self._working = True

    def scan(self, event: ScanStarted, *, untold: int = 0) -> None:
        """Take in what there was already.

        Args:
            untold: verdicts among these that no session has told; the one before was killed.
        """
        self.work()
        if len(self._sessions) > 1 and self._sessions[-2].ended is None:
            self._sessions[-2].verdicts += untold
        if self._sessions:
            self._sessions[-1].taken_over += event.restored

    def call(self, event: CallFinished | CallFailed) -> None:
        """Count a call.

        What is told before the work begins was done by the session before: it was killed, and could
        not tell it.
        """
        before = 1 if self._working else 2
        session = self._sessions[-before] if len(self._sessions) >= before else None
        if session is None:
            return
        match event:
            case CallFinished(source="paid"):
                session.calls += 1
            case CallFailed(error=error) if error == LOST:
                session.lost += 1
            case _:
                pass

    def window(self, event: WindowFinished) -> None:
        """Count the verdicts of a window."""
        if self._sessions:
            self._sessions[-1].verdicts += event.items - event.known - event.unresolved
