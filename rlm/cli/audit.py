"""`rlm audit`: the options, checked cheapest first, and what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

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
    limits_of,
    price_of,
    require_given,
)

__all__ = ["EXAMPLES", "audit"]

EXAMPLES: Final = """\b
Examples:
  rlm audit src "Find places where user input reaches a shell." --model openai:gpt-4.1-mini
  rlm audit . "List errors that are swallowed." --include '*.py' --exclude 'tests/' --out found.sarif
"""


def audit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder whose files to audit.")],
    task: Annotated[str, typer.Argument(help="What to look for, in words.")],
    *,
    # files
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include", metavar="GLOB", help="Files to read, as in .gitignore; several times."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="GLOB", help="Files and folders to leave out; several times."
        ),
    ] = None,
    max_file_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-file-bytes", metavar="N", help="Larger files are skipped.  [default: 1000000]"
        ),
    ] = None,
    # workers
    worker_budget: Annotated[
        int | None,
        typer.Option(
            "--worker-budget", metavar="N", help="Files for each worker, at most.  [default: 20]"
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(
            "--attempts",
            metavar="N",
            help="Tries of a worker until its findings are shown by the files.  [default: 3]",
        ),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        typer.Option("--answer-tokens", metavar="N", help="Tokens of one answer.  [default: 2048]"),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", metavar="TEXT", help="Facts for workers; trusted.")
    ] = None,
    # model
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="SPEC", help="Model that reads; none: the weights here."),
    ] = None,
    key_env: KeyEnv = None,
    gate: GateFile = None,
    budget: BudgetText = None,
    price: PriceText = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", help="Workers at once.  [default: 16]"),
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
            "--run", metavar="DIR", help="Directory of the run. One that is there goes on."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the report: .json, .sarif or .csv."),
    ] = None,
    json_: Json = False,
) -> int:
    """Look through the files of a folder, and show each finding in its file.

    Files that .gitignore names, version control, keys and environments, binaries, links and large
    files are skipped and listed. Code looks each quote up; what no file shows is rejected.
    """
    require_given(
        run=run, out=out, model=model, key_env=key_env, context=context, price=price,
        include=include, exclude=exclude, gate=gate,
    )  # fmt: skip
    if not task.strip():
        raise ValidationError("the task is empty", hint="say what to look for, in words")
    prices, limits = price_of(price), limits_of(rpm, tpm)
    # What follows loads numbers and models.
    from rlm.auditing.files import check_audit_target
    from rlm.cli.audit_run import AuditAsked, run_audit, wired
    from rlm.cli.gating import gate_human
    from rlm.corpora import require_outside
    from rlm.options.top_up import BudgetChange

    target = None if out is None else check_audit_target(out)
    if target is not None:
        require_outside(str(folder), target.path, option="--out")
    wiring = wired(
        run,
        {
            "model": model,
            "key_env": key_env,
            "prices": prices,
            "limits": limits,
            "concurrency": concurrency,
            "gate": gate,
            "human": gate_human(),
            "top_up": BudgetChange.of(budget),
        },
        {"calls": max_calls, "tokens": max_tokens, "usd": max_usd, "seconds": max_seconds},
    )
    options = {
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
        "max_file_bytes": max_file_bytes,
        "worker_budget": worker_budget,
        "attempts": attempts,
        "max_tokens": answer_tokens,
        "context": context,
        "run": run,
    }
    return run_audit(
        AuditAsked(
            folder=folder,
            task=task,
            wiring=wiring,
            options={name: value for name, value in options.items() if value is not None},
            target=target,
            as_json=json_,
        )
    )
