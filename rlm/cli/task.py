"""What is asked of a recursion: the options that `rlm recurse` and `rlm plan` share, checked.

Words, files and columns are checked first; what loads numbers and models comes after them, and none
of it is loaded for --help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, ParamSpec, cast

import typer

from executors.errors import ValidationError
from rlm.cli.options import (
    BudgetText,
    GateFile,
    Json,
    KeyEnv,
    MaxCalls,
    MaxSeconds,
    MaxTokens,
    MaxUsd,
    PriceText,
    Rpm,
    Tpm,
    choose,
    limits_of,
    price_of,
)
from rlm.cli.options import require_given as require

if TYPE_CHECKING:
    from rlm.cli.text_out import TextTarget
    from rlm.corpora import Corpus
    from rlm.recursions.options import RecurseOptions
    from rlm.recursions.wiring import Wiring

__all__ = ["Asked", "asked", "command"]

P = ParamSpec("P")

_SOURCE: Final = ("id", "text", "query", "format", "encoding", "on-bad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A recursion that was asked for."""

    task: str
    wiring: Wiring
    options: RecurseOptions
    target: TextTarget | None
    as_json: bool


def asked(
    task: Annotated[str, typer.Argument(help="What is to be done, in words.")],
    *,
    # corpus
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus", metavar="PATH", help="Records to work on: a file, folder or glob; - reads."
        ),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Id column; detected and said.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="COLUMN", help="Text column; may be given several times."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="SQL", help="What to read from a database.")
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Format, where it is not clear.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Encoding of text files.")
    ] = None,
    on_duplicate: Annotated[
        str | None,
        typer.Option(
            "--on-duplicate",
            metavar="HOW",
            help="Repeated ids: refuse or suffix.  [default: refuse]",
        ),
    ] = None,
    on_bad: Annotated[
        str | None,
        typer.Option(
            "--on-bad",
            metavar="HOW",
            help="Rows that are no record: refuse or skip.  [default: refuse]",
        ),
    ] = None,
    # shape
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", metavar="HOW", help="fanout or partition; by default the worker decides."
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", help="So many parts; of a partition at least."),
    ] = None,
    retrieval: Annotated[
        str | None,
        typer.Option(
            "--retrieval",
            metavar="HOW",
            help="How the corpus is read: scan, search, exact, tools or read.",
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option("--max-depth", metavar="N", help="Levels below the root.  [default: 3]"),
    ] = None,
    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes", metavar="N", help="Nodes that models may ask for.  [default: 256]"
        ),
    ] = None,
    worker_budget: Annotated[
        int | None,
        typer.Option(
            "--worker-budget",
            metavar="N",
            help="Records for each worker of a partition.  [default: 100]",
        ),
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Let rules take the task apart, not a model.")
    ] = False,
    # worker
    contract: Annotated[
        str | None,
        typer.Option("--contract", metavar="TEXT", help="What done means; the result is graded."),
    ] = None,
    persona: Annotated[
        str | None,
        typer.Option("--persona", metavar="TEXT", help="What workers are; trusted above all else."),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option("--context", metavar="TEXT", help="Facts for workers and grader; trusted."),
    ] = None,
    sensor: Annotated[
        str | None,
        typer.Option(
            "--sensor",
            metavar="SPEC",
            help="Check leaves in code: json-schema:FILE or citations; they try again until it holds. Who may hand parts on is no leaf: see --max-depth 0.",
        ),
    ] = None,
    synthesize: Annotated[
        str | None,
        typer.Option(
            "--synthesize", metavar="HOW", help="How parts become one: concat, or merge by a model."
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", metavar="N", help="Records a call of a scan.")
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option("--passes", metavar="N", help="How often a scan judges.  [default: 2]"),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option("--votes", metavar="HOW", help="any, majority or all of the passes."),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        typer.Option("--answer-tokens", metavar="N", help="Tokens of one answer.  [default: 4096]"),
    ] = None,
    # models
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="SPEC",
            help="Model that works, and plays each role not named; none: the weights here.",
        ),
    ] = None,
    planner: Annotated[
        str | None, typer.Option("--planner", metavar="SPEC", help="Model that plans.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="SPEC", help="Model that judges records.")
    ] = None,
    verifier: Annotated[
        str | None, typer.Option("--verifier", metavar="SPEC", help="Model that grades.")
    ] = None,
    key_env: KeyEnv = None,
    gate: GateFile = None,
    budget: BudgetText = None,
    price: PriceText = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", help="Nodes and calls at once.  [default: 16]"),
    ] = None,
    # bounds
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    # output
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="DIR",
            help="Directory of the run. One that is there goes on, as it was where nothing else is "
            "said; without it a new one is made.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the result: as it is, or rows of a count as .csv, .jsonl or .parquet.",
        ),
    ] = None,
    json_: Json = False,
) -> Asked:
    """Check what is asked for; nothing is read or spent yet.

    Raises:
        UsageError: an option, the corpus or a file is wrong.
    """
    require(
        corpus=corpus, run=run, out=out, id=id_, text=text, query=query, format=format_,
        encoding=encoding, model=model, planner=planner, judge=judge, verifier=verifier,
        key_env=key_env, contract=contract, persona=persona, context=context, sensor=sensor,
        price=price, gate=gate,
    )  # fmt: skip
    if not task.strip():
        raise ValidationError("the task is empty", hint="say what is to be done, in words")
    opened = _opened(
        corpus,
        {
            "id": id_, "text": text or None, "query": query, "format": format_,
            "encoding": encoding, "on-bad": on_bad,
        },
        out,
    )  # fmt: skip
    # What follows loads numbers, models and judges.
    from rlm.cli.gating import gate_human
    from rlm.cli.text_out import check_text_target
    from rlm.cli.wired import bounded, options_over
    from rlm.options.top_up import BudgetChange
    from rlm.recursions.sensing import leaf_sensor

    target = None if out is None else check_text_target(out, source=corpus)
    wiring, options = options_over(
        run,
        {
            "corpus": opened,
            "mode": _one_of(mode, ("fanout", "partition"), "--mode"),
            "count": count,
            "retrieval": _one_of(
                retrieval, ("scan", "search", "exact", "tools", "read"), "--retrieval"
            ),
            "contract": contract,
            "persona": persona,
            "context": context,
            "max_depth": max_depth,
            "max_nodes": max_nodes,
            "worker_budget": worker_budget,
            "window": window,
            "passes": passes,
            "votes": _one_of(votes, ("any", "majority", "all"), "--votes"),
            "max_tokens": answer_tokens,
            "synthesize": _one_of(synthesize, ("concat", "merge"), "--synthesize"),
            "refine_leaf": None if sensor is None else leaf_sensor(sensor),
            "planner_rules": rules or None,
            "on_duplicate": _one_of(on_duplicate, ("refuse", "suffix"), "--on-duplicate"),
        },
        {
            "model": model,
            "planner": planner,
            "judge": judge,
            "verifier": verifier,
            "key_env": key_env,
            "prices": price_of(price),
            "limits": limits_of(rpm, tpm),
            "concurrency": concurrency,
            "gate": gate,
            "human": gate_human(),
            "top_up": BudgetChange.of(budget),
        },
    )
    wiring = bounded(wiring, calls=max_calls, tokens=max_tokens, usd=max_usd, seconds=max_seconds)
    return Asked(task=task, wiring=wiring, options=options, target=target, as_json=json_)


def command(check: Callable[P, Asked], act: Callable[[Asked], int], words: str) -> Callable[P, int]:
    """Return a command that takes the options of a check, and acts on what was asked.

    Args:
        words: what its help says.
    """

    @wraps(check, assigned=("__annotations__",))  # its name and its words are its own
    def checked(*args: P.args, **given: P.kwargs) -> int:
        return act(check(*args, **given))

    checked.__doc__ = words
    return checked


def _one_of(value: str | None, choices: tuple[str, ...], option: str) -> str | None:
    return None if value is None else choose(value, choices, option=option)


def _opened(corpus: str | None, how: Mapping[str, object], out: str | None) -> Corpus | None:
    """Open the corpus; options that speak of one without one are refused."""
    if corpus is None:
        for name in _SOURCE:
            if how[name] is not None:
                raise ValidationError(
                    f"--{name} has no effect: there is no corpus",
                    hint="name one with --corpus PATH, or leave it out",
                )
        return None
    from rlm.corpora import open_corpus, require_outside  # readers of all formats

    if out is not None:
        require_outside(corpus, Path(out), option="--out")
    return open_corpus(
        corpus,
        id=_text(how["id"]),
        text=cast("list[str] | None", how["text"]),
        query=_text(how["query"]),
        format=_text(how["format"]),
        encoding=_text(how["encoding"]),
        on_bad=choose(_text(how["on-bad"]) or "refuse", ("refuse", "skip"), option="--on-bad"),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
