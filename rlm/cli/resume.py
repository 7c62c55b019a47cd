"""`rlm resume`: a run goes on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from executors.errors import ValidationError
from rlm.cli.options import (
    BudgetText,
    DryRun,
    Engine,
    GateFile,
    Json,
    KeyEnv,
    ModelSpec,
    OutFile,
    PriceText,
    Rpm,
    Tpm,
    choose,
    limits_of,
    price_of,
    refuse_dry,
    require_given,
)

__all__ = ["resume"]


def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="Directory of a run, its receipt, or its id.")
    ],
    *,
    votes: Annotated[
        str | None,
        typer.Option("--votes", metavar="HOW", help="any, majority or all; costs no call."),
    ] = None,
    passes: Annotated[
        int | None, typer.Option("--passes", metavar="N", help="How often each record is judged.")
    ] = None,
    model: ModelSpec = None,
    key_env: KeyEnv = None,
    price: PriceText = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", metavar="N", help="Calls in flight.")
    ] = None,
    engine: Engine = None,
    gate: GateFile = None,
    budget: BudgetText = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", metavar="N", help="Bound of all sessions: calls.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", help="Bound of all sessions: tokens.")
    ] = None,
    max_usd: Annotated[
        float | None, typer.Option("--max-usd", metavar="USD", help="Bound of all sessions: USD.")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", metavar="S", help="Bound of this session: seconds."),
    ] = None,
    dry_run: DryRun = False,
    out: OutFile = None,
    json_: Json = False,
) -> int:
    """Go on with a run that was killed, interrupted or incomplete; nothing is paid twice.

    What changed is named: other votes, a higher bound, another model. To count grown or edited
    data, count again with --run RUN_DIR.
    """
    require_given(model=model, key_env=key_env, price=price, engine=engine, gate=gate)
    # Numbers and manifests load where a run is opened; --help has no use for them.
    from corpus.votes import VOTES
    from rlm.cli.gating import gate_human
    from rlm.options.top_up import BudgetChange
    from rlm.runs.home import named_run
    from rlm.runs.manifest import Manifest

    given: dict[str, object] = {
        "model": model,
        "key_env": key_env,
        "votes": choose(votes, VOTES, option="--votes") if votes else None,
        "passes": passes,
        "concurrency": concurrency,
        "engine": engine,
        "prices": price_of(price),
        "limits": limits_of(rpm, tpm),
        "gate": gate,
        "human": gate_human(),
        "top_up": BudgetChange.of(budget),
    }
    bounds = _Bounds(calls=max_calls, tokens=max_tokens, usd=max_usd, seconds=max_seconds)
    if Manifest.load(named_run(directory)).kind == "recurse":
        if dry_run:
            raise ValidationError(
                "--dry-run has no effect: the run is a recursion",
                hint="what one would take is said by: rlm plan TASK",
            )
        return _recursion(directory, given, bounds, out=out, as_json=json_)
    return _count(directory, given, bounds, out=out, dry_run=dry_run, as_json=json_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Bounds that are given anew; None leaves one as it is."""

    calls: int | None
    tokens: int | None
    usd: float | None
    seconds: float | None


def _count(
    directory: Path,
    given: dict[str, object],
    bounds: _Bounds,
    *,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    from rlm.cli.going_on import bounded
    from rlm.cli.run import run_count
    from rlm.outputs import check_target
    from rlm.resuming import resumed

    if dry_run:
        refuse_dry(out=out)
    target = check_target(out) if out is not None else None
    question, corpus, options = resumed(directory, given)
    options = bounded(
        options,
        calls=bounds.calls,
        tokens=bounds.tokens,
        usd=bounds.usd,
        seconds=bounds.seconds,
    )
    if dry_run:
        from rlm.cli.dry_run import run_dry

        return run_dry(question, corpus, options, as_json=as_json)
    return run_count(question, corpus, options, target, as_json=as_json)


def _recursion(
    directory: Path,
    given: dict[str, object],
    bounds: _Bounds,
    *,
    out: Path | None,
    as_json: bool,
) -> int:
    from rlm.cli.recurse_run import run_recurse
    from rlm.cli.task import Asked
    from rlm.cli.text_out import check_text_target
    from rlm.cli.wired import bounded
    from rlm.resuming import resumed_recursion

    target = None if out is None else check_text_target(str(out), source=None)
    task, wiring, options = resumed_recursion(directory, given)
    wiring = bounded(
        wiring,
        calls=bounds.calls,
        tokens=bounds.tokens,
        usd=bounds.usd,
        seconds=bounds.seconds,
    )
    asked = Asked(task=task, wiring=wiring, options=options, target=target, as_json=as_json)
    return run_recurse(asked)
