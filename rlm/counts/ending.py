"""How a session of a count ends: in one outcome, and in a receipt that says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from corpus.criterion import Criterion
from corpus.judges.base import JudgeInfo
from corpus.results import Ranking, Tally, ranked_by_probability
from corpus.tally_file import save_ranking, save_tally
from executors.clock import Clock
from executors.errors import DiskFault, Halted, Interrupted, ModelUnusable, OutOfQuota
from rlm.outcome import Blocker, Completed, Incomplete
from rlm.receipts.receipts import Receipts
from rlm.runs.log import RunLog
from rlm.runs.raising import told_how
from rlm.runs.roots import result_root
from rlm.summary import missing_lines, summarise

if TYPE_CHECKING:
    from rlm.runs.session import Session

__all__ = ["CountOutcome", "Ending"]

CountOutcome: TypeAlias = Completed[Tally] | Incomplete[Tally | Ranking]


class Ending:
    """Ends a session once.

    A disk that takes nothing any more costs no result: the outcome is incomplete, blocked by the
    disk, with all that is known in memory.
    """

    def __init__(self, session: Session, log: RunLog, criterion: Criterion, clock: Clock) -> None:
        self._session = session
        self._log = log
        self._criterion = criterion
        self._clock = clock

    def save(self, result: Tally | Ranking) -> None:
        """Write a result into the run, for whoever looks at it later."""
        directory = self._log.directory / "verdicts"
        with self._log.writing("the result"):
            match result:
                case Tally():
                    save_tally(result, directory)
                case Ranking():
                    save_ranking(result, directory)
                case _:
                    assert_never(result)

    def of_tally(self, result: Tally, judge: JudgeInfo, halted: Halted | None) -> CountOutcome:
        """Return the outcome of a count that was judged, as far as it came."""
        if halted is not None:
            lines = self._lines(halted)
            return self.incomplete(result, _blocker(halted), (*lines, *missing_lines(result)))
        if judge.scoring and judge.kind != "encoder":
            why = "token probabilities without calibration by labels order, and state no number"
            best = ranked_by_probability(result)
            return self.incomplete(best, "uncalibrated-judge", (why, *missing_lines(result)))
        if not result.complete:
            return self.incomplete(result, "unresolved-records", missing_lines(result))
        if (fault := self._log.fault) is not None:
            return self._unwritten(result, fault)
        receipts = self.finish(None, result)
        if (fault := self._log.fault) is not None:
            return self._unwritten(result, fault, receipts)
        return Completed(result=result, receipts=receipts)

    def incomplete(
        self, best: Tally | Ranking | None, blocker: Blocker, missing: tuple[str, ...]
    ) -> Incomplete[Tally | Ranking]:
        """Return an outcome that lacks something."""
        receipts = self.finish(blocker, best)
        return Incomplete(best=best, missing=missing, blocker=blocker, receipts=receipts)

    def halted(self, halted: Halted) -> Incomplete[Tally | Ranking]:
        """Return the outcome of a session that was stopped before anything was judged."""
        return self.incomplete(None, _blocker(halted), self._lines(halted))

    def _lines(self, halted: Halted) -> tuple[str, ...]:
        """Return why it was stopped, where, and what to do about it."""
        halted = told_how(halted, self._log.directory)
        return tuple([line for line in (halted.what, halted.where, halted.hint) if line])

    def finish(self, blocker: Blocker | None, result: Tally | Ranking | None) -> Receipts:
        """End the session in its receipt and in the manifest."""
        root = None if result is None else result_root(result, self._criterion)
        receipts = self._log.finish(blocker, summarise(result), content_root=root)
        with self._log.writing("the manifest"):
            self._session.end(self._clock.now(), blocker=blocker, content_root=root)
        return receipts

    def _unwritten(
        self, result: Tally, fault: DiskFault, receipts: Receipts | None = None
    ) -> Incomplete[Tally | Ranking]:
        lines = [line for line in (fault.what, fault.where, fault.hint) if line]
        return Incomplete(
            best=result,
            missing=tuple(lines),
            blocker="disk",
            receipts=receipts or self.finish("disk", result),
        )


def _blocker(halted: Halted) -> Blocker:
    match halted:
        case ModelUnusable():
            return "model-unusable"
        case OutOfQuota():
            return "out-of-quota"
        case Interrupted():
            return "interrupted"
        case DiskFault():
            return "disk"
        case _:
            return "halted"
