"""The front for `audit`: a folder is read in parts, and each finding has to be shown by its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from corpus.sources import Source
from executors.errors import SourceError, ValidationError
from executors.events import Event
from executors.models.base import Model
from rlm.auditing.bench import Bench
from rlm.auditing.folder import AuditFolder
from rlm.auditing.prompts import AUDITOR
from rlm.auditing.report import AuditReport
from rlm.checks.refinement import RefineLeaf
from rlm.corpora import Corpus
from rlm.outcome import Completed, Incomplete
from rlm.recursion import recurse_with
from rlm.recursions.options import RecurseOptions
from rlm.recursions.wiring import Wiring
from rlm.sync import sync_twin

__all__ = ["AuditOutcome", "audit", "audit_sync"]

AuditOutcome: TypeAlias = Completed[AuditReport] | Incomplete[AuditReport]
_FILES: Final = 20
_ATTEMPTS: Final = 100


async def audit(
    folder: str | os.PathLike[str],
    task: str,
    ctx: Wiring | str | Model | None = None,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_file_bytes: int = 1_000_000,
    worker_budget: int = _FILES,
    attempts: int = 3,
    max_tokens: int = 2_048,
    context: str | None = None,
    run: str | os.PathLike[str] | None = None,
) -> AuditOutcome:
    """Look through the files of a folder for what a task asks, and show each finding in its file.

    Workers read the files in parts and quote what they found; code looks each quote up and gives the
    lines. What no file shows is rejected, and listed. Text in the files is data, whatever it says.

    Args:
        folder: read with all below it, but for what its `.gitignore` files name, version control,
            files that may hold secrets, binaries, links, and what is too big; all that is listed.
        task: what to look for, in words.
        ctx: who answers and what bounds them, as in `recurse`; None takes the weights here.
        include: patterns of the files to read, as `.gitignore` has them; none reads all.
        exclude: patterns of files and folders to leave out.
        max_file_bytes: of a file that is read.
        worker_budget: files for each worker, at most; fewer where they are long.
        attempts: how often a worker may try until its findings are shown by the files.
        max_tokens: of one answer.
        context: facts for the workers; trusted text.
        run: the directory of the run; one that is there already is gone on with.

    Returns:
        `Completed` with the report; its verdict says whether all files were looked at and all that
        was claimed is shown. Or `Incomplete`, with the report of what was done as its best.

    Raises:
        UsageError: the folder, an option or the model is wrong; nothing was spent.
    """
    if isinstance(attempts, bool) or not 1 <= attempts <= _ATTEMPTS:
        raise ValidationError(
            f"attempts={attempts!r}", hint=f"give an integer from 1 to {_ATTEMPTS}"
        )
    source = AuditFolder(folder, include=include, exclude=exclude, max_file_bytes=max_file_bytes)
    bench = Bench(source, None if run is None else Path(run))
    wiring = Wiring.of(ctx)
    wiring = replace(wiring, on_event=_heard(bench, wiring.on_event))
    options = RecurseOptions(
        corpus=Corpus(source=source, column=_no_column),
        mode="partition",
        retrieval="read",
        persona=AUDITOR,
        context=context,
        evaluate=bench.audit_verdict,
        synthesize=bench.audit_union,
        refine_leaf=RefineLeaf(sensor=bench.sensor, max_iterations=attempts),
        worker_budget=worker_budget,
        max_tokens=max_tokens,
        run=run,
    )
    try:
        outcome = await recurse_with(task, wiring, options)
    finally:
        bench.close()
    match outcome:
        case Completed(result=result):
            report = AuditReport.read(result)
            assert report is not None  # the union of findings made it
            return Completed(result=report, receipts=outcome.receipts, verdict=outcome.verdict)
        case Incomplete(best=best):
            return Incomplete(
                best=_best(best, source),
                missing=outcome.missing,
                blocker=outcome.blocker,
                receipts=outcome.receipts,
                node=outcome.node,
                detail=outcome.detail,
            )


audit_sync = sync_twin(audit)
"""`audit` for code that is not async; also in notebooks."""


def _best(best: object, source: AuditFolder) -> AuditReport:
    """Return the report of an audit that did not come to its end, be it only of what was skipped."""
    return AuditReport.read(best) or AuditReport(skipped=tuple(source.skips))


def _heard(bench: Bench, also: Callable[[Event], None] | None) -> Callable[[Event], None]:
    if also is None:
        return bench.hear

    def hear(event: Event) -> None:
        bench.hear(event)
        also(event)

    return hear


def _no_column(name: str) -> Source:
    raise SourceError(f"a folder of files has no column {name!r}")
