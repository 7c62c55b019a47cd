"""Checks a recursion against its own files: its result, its records, its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpus.results import Tally
from corpus.spool import Spool
from corpus.tally_file import load_result
from executors.errors import RunDirError
from rlm.recursions.ending import read_result, root_of, summary_of
from rlm.runs.checking import (
    Checked,
    RunCheck,
    check_roots,
    is_the_same,
    record_differences,
    vote_differences,
)

__all__ = ["check_recursion"]


def check_recursion(directory: Path) -> Checked:
    """Compute the roots of a recursion from its files, and compare what these say of each other.

    Raises:
        RunDirError: it is no run that ended, or it was made elsewhere and holds links.
    """
    return check_roots(directory, _Check)


class _Check(RunCheck):
    def _contents(self) -> Iterator[str]:
        if not (self._directory / "spool" / "meta.json").exists():
            yield from self._value(read_result(self._directory))
            return
        try:
            with Spool.open(self._directory / "spool") as spool:
                yield from record_differences(spool)
                yield from self._held(spool)
        except (RunDirError, OSError, ValueError, LookupError) as error:
            yield f"the result cannot be read: {error}"

    def _held(self, spool: Spool) -> Iterator[str]:
        if self._receipts.result.get("kind") != "tally":
            yield from self._value(read_result(self._directory))
            return
        result = load_result(self._directory / "verdicts", spool)
        if isinstance(result, Tally):
            yield from vote_differences(result)
        yield from self._value(result)

    def _value(self, value: object | None) -> Iterator[str]:
        self.content_root = root_of(self._receipts.task, value)
        if self.content_root != self._receipts.content_root:
            yield "task and result have another content root than the receipt states"
        of_run = {"verdict", "notes", "node", "detail"}
        stated = {k: v for k, v in self._receipts.result.items() if k not in of_run}
        found = {k: v for k, v in summary_of(value).items() if k not in of_run}
        if not is_the_same(found, stated):
            yield "the result is another one than the receipt states"
