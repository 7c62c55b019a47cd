"""The front for `recurse`: one hard task, taken apart, worked on, checked, and put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from corpus.questions import require_encodable
from corpus.sources import SourceLike
from corpus.votes import Votes
from executors.errors import ValidationError
from executors.models.base import Model
from executors.tools.base import Tool
from planner.families import WORKER_BUDGET, Mode
from planner.routes import Retrieval
from rlm.checks.evaluator import Evaluate
from rlm.checks.refinement import RefineLeaf
from rlm.corpora import Corpus
from rlm.recursions.ending import RecurseOutcome
from rlm.recursions.options import OnDuplicate, RecurseOptions
from rlm.recursions.run import RecurseRun
from rlm.recursions.wiring import Wiring
from rlm.sync import sync_twin
from rlm.synthesis import Synthesize

__all__ = ["RecurseOutcome", "recurse", "recurse_sync", "recurse_with"]


async def recurse(
    task: str,
    ctx: Wiring | str | Model | None = None,
    *,
    corpus: SourceLike | Corpus | None = None,
    mode: Mode | None = None,
    count: int | None = None,
    retrieval: Retrieval | None = None,
    contract: str | None = None,
    evaluate: Evaluate | None = None,
    refine_leaf: RefineLeaf | None = None,
    synthesize: Synthesize | None = None,
    persona: str | None = None,
    context: str | None = None,
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = (),
    max_depth: int = 3,
    max_nodes: int = 256,
    rounds: int = 100,
    worker_budget: int = WORKER_BUDGET,
    window: int = 8,
    passes: int = 2,
    votes: Votes = "any",
    temperature: float | None = None,
    max_tokens: int = 4_096,
    planner_rules: bool = False,
    on_duplicate: OnDuplicate = "refuse",
    run: str | os.PathLike[str] | None = None,
) -> RecurseOutcome:
    """Do a task that is too much for one call of a model, and say honestly how far it came.

    Args:
        task: what is to be done, in words.
        ctx: who answers and what bounds them; a model, or its spec, stands for a `Wiring` with it.
            None takes the weights on this machine, which work but neither plan nor judge: rules and
            checks in code do that, and the outcome says so.
        corpus: records to work on: a path, a data frame, an iterable, or what `open_corpus` returned.
        mode: "fanout" forces parts, planned before any work; "partition" gives each worker a part of
            the corpus. None lets the worker decide, by the tool `spawn_child`.
        count: so many parts exactly; of a partition, at least. With a corpus each part is a slice.
        retrieval: how the corpus is read: "scan" judges every record and counts in code, "search"
            finds the best hits, "exact" matches terms, "tools" lets the worker choose, "read" shows
            it in the worker's message. A question that needs every record is never only searched.
        contract: what "done" means; the result is graded against it.
        evaluate: your own judge of the result, in place of the grader: of (result, context) it returns
            a verdict such as `Satisfied()`, or `{"pass": bool, "critique": str}`.
        refine_leaf: lets leaves try again until your sensor is satisfied. A worker that may hand
            parts on is no leaf, also where it hands on none; `max_depth=0` makes it one.
        synthesize: how answers become one: a function of a `SynthesisInput` (whose `results` are those
            of the parts, in order), "concat" or "merge". None is the parent's own
            last turn, and for forced parts "concat".
        persona: what workers are. It stands above all their other instructions, so it is trusted
            text: never what a user or a document wrote.
        context: facts for workers, planner and grader, such as paths; read-only, trusted as well.
        tools: what workers may call; a function is asked anew each round.
        max_depth: levels below the root; 1 is flat, 0 hands nothing on.
        max_nodes: nodes that models may ask for in the whole tree.
        rounds: of one worker.
        worker_budget: records for each worker of a partition.
        window, passes, votes: of a scan, as in `count`.
        max_tokens: of one answer.
        planner_rules: let rules take the task apart, also where a model could.
        run: the directory of the run; one that is there already is gone on with, and nothing that
            was answered is paid again.

    Returns:
        `Completed` with the result and its verdict, which may be that it failed; or `Incomplete` with
        the best there is, what is missing, and which node broke by what.

    Raises:
        UsageError: an option, the corpus or the model is wrong; nothing was spent.
    """
    options = RecurseOptions(
        corpus=corpus,
        mode=mode,
        count=count,
        retrieval=retrieval,
        contract=contract,
        evaluate=evaluate,
        refine_leaf=refine_leaf,
        synthesize=synthesize,
        persona=persona,
        context=context,
        tools=tools,
        max_depth=max_depth,
        max_nodes=max_nodes,
        rounds=rounds,
        worker_budget=worker_budget,
        window=window,
        passes=passes,
        votes=votes,
        temperature=temperature,
        max_tokens=max_tokens,
        planner_rules=planner_rules,
        on_duplicate=on_duplicate,
        run=run,
    )
    return await recurse_with(task, Wiring.of(ctx), options)


async def recurse_with(task: str, wiring: Wiring, options: RecurseOptions) -> RecurseOutcome:
    """Do a task with options that were checked already."""
    given: object = task
    if not isinstance(given, str) or not given.strip():
        raise ValidationError(f"task={task!r}"[:200], hint="say what is to be done, in words")
    require_encodable(task, "task")
    return await RecurseRun(task, wiring, options).outcome()


recurse_sync = sync_twin(recurse)
"""`recurse` for code that is not async; also in notebooks."""
