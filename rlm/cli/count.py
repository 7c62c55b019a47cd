"""`rlm count`: the options, checked cheapest first, and the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, get_args

import typer

from executors.errors import ValidationError
from rlm.cli.options import (
    DryRun,
    Engine,
    GateFile,
    Json,
    KeyEnv,
    MaxCalls,
    MaxSeconds,
    MaxTokens,
    MaxUsd,
    ModelSpec,
    PriceText,
    Rpm,
    Tpm,
    choose,
    encoder_spec,
    limits_of,
    price_of,
    refuse_dry,
    require_given,
    split_list,
    typed_question,
)

__all__ = ["EXAMPLES", "count"]

EXAMPLES: Final = """\b
Examples:
  rlm count tickets.csv "does the customer ask for a refund?" --terms refund,"money back"
  rlm count tickets.csv "does the customer ask for a refund?" --label 40 --out rows.csv
  rlm count tickets.csv "is the writer angry?" --model openai:gpt-4.1-mini --max-usd 2
"""


def count(
    source: Annotated[
        str, typer.Argument(help="File, folder or glob to read; - for standard input.")
    ],
    question: Annotated[str, typer.Argument(help="A yes/no question, asked verbatim.")],
    *,
    # source
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
        str,
        typer.Option("--on-bad", metavar="HOW", help="Rows that are no record: refuse or skip."),
    ] = "refuse",
    # judge
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="KIND",
            help="chat, logprob, encoder or rule; the encoder without a model, else chat.",
        ),
    ] = None,
    one_of: Annotated[
        str | None,
        typer.Option("--one-of", metavar="A,B,C", help="Labels: which one fits the record?"),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option("--terms", metavar="A,B,C", help="Rule judge: any of these words matches."),
    ] = None,
    description: Annotated[
        str | None,
        typer.Option("--description", metavar="TEXT", help="What a match looks like."),
    ] = None,
    verbatim: Annotated[
        bool, typer.Option("--verbatim", help="Ask a question that holds {{ name }} as it stands.")
    ] = False,
    quotes: Annotated[
        bool, typer.Option("--quotes", help="Ask for a quote, which code looks up in the record.")
    ] = False,
    passes: Annotated[
        int | None,
        typer.Option(
            "--passes", metavar="N", help="How often each record is judged.  [default: 2]"
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes", metavar="HOW", help="any, majority or all of the passes.  [default: any]"
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", metavar="N", help="Records a call; 8 for chat.")
    ] = None,
    window_tokens: Annotated[
        int | None,
        typer.Option(
            "--window-tokens", metavar="N", help="Estimated tokens a call shows.  [default: 6000]"
        ),
    ] = None,
    # labels
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="FILE|COLUMN",
            help="Labels of some records: CSV, JSONL or a column.",
        ),
    ] = None,
    label: Annotated[
        int | None,
        typer.Option("--label", metavar="N", help="Label in this terminal until N records are."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who labels; $USER by default.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="LABEL", help="The label that means yes."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Encoder; see `rlm models`.")
    ] = None,
    words: Annotated[
        int | None,
        typer.Option(
            "--words", metavar="N", help="Words of each record the encoder reads.  [default: 60]"
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no embeddings for later questions.")
    ] = False,
    # model
    model: ModelSpec = None,
    key_env: KeyEnv = None,
    price: PriceText = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", help="Calls in flight.  [default: 16]"),
    ] = None,
    engine: Engine = None,
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
            help="Directory of the run. One that is there goes on, with its model, price and "
            "bounds where none are named; without it a new one is made.",
        ),
    ] = None,
    gate: GateFile = None,
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="RUN_DIR", help="Answer each call from a recorded run."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="Write a row a record: .csv, .jsonl or .parquet."
        ),
    ] = None,
    dry_run: DryRun = False,
    json_: Json = False,
) -> int:
    """Count the records that match a question, and account for every one of them.

    The result goes to standard output, everything else to standard error.
    """
    # Cheapest first: words, files and columns; then what loads numbers, encoders and models. None
    # of it is loaded for --help.
    from rlm.cli.gating import gate_human
    from rlm.cli.labels import labels_from
    from rlm.corpora import open_corpus, require_outside

    require_given(
        source=source, run=run, out=out, labels=labels, id=id_, text=text, query=query, by=by,
        format=format_, encoding=encoding, encoder=encoder, model=model, key_env=key_env,
        judge=judge, positive=positive, description=description, price=price, replay=replay,
        engine=engine, gate=gate,
    )  # fmt: skip
    asked = typed_question(question, one_of=one_of, verbatim=verbatim)
    if positive is not None and one_of is not None:
        raise ValidationError(
            "--positive has no effect: --one-of has no yes", hint="leave one of the two out"
        )
    term_list = split_list(terms, option="--terms")
    if dry_run:
        refuse_dry(out=out, label=label)
    if out is not None:
        require_outside(source, Path(out), option="--out")
    if not Path(source).exists() and Path(question).exists():
        raise ValidationError(
            f"the question {question!r} is the name of a file",
            hint="the source comes first: rlm count SOURCE QUESTION",
        )
    source_open = open_corpus(
        source,
        id=id_,
        text=text or None,
        query=query,
        format=format_,
        encoding=encoding,
        on_bad=choose(on_bad, ("refuse", "skip"), option="--on-bad"),
    )
    known, asker = labels_from(
        labels,
        goal=label,
        by=by,
        positive=positive,
        description=description,
        question=asked,
        source=source,
    )

    from corpus.judges.base import JudgeKind
    from corpus.votes import VOTES
    from rlm.cli.going_on import bounded, options_over
    from rlm.cli.run import run_count
    from rlm.outputs import check_target

    target = check_target(out, source=source, labels=labels) if out is not None else None
    options = options_over(
        run,
        {
            "model": model,
            "key_env": key_env,
            "judge": choose(judge, get_args(JudgeKind), option="--judge") if judge else None,
            "encoder": encoder_spec(encoder),
            "words": words,
            "labels": known,
            "positive": positive,
            "ask_labels": asker,
            "description": description,
            "terms": term_list or None,
            "passes": passes,
            "votes": choose(votes, VOTES, option="--votes") if votes is not None else None,
            "window": window,
            "window_tokens": window_tokens,
            "concurrency": concurrency,
            "engine": engine,
            "quotes": quotes or None,
            "prices": price_of(price),
            "limits": limits_of(rpm, tpm),
            "on_duplicate": (
                choose(on_duplicate, ("refuse", "suffix"), option="--on-duplicate")
                if on_duplicate is not None
                else None
            ),
            "replay": replay,
            "gate": gate,
            "human": gate_human(),
            "cache": False if no_cache else None,
        },
    )
    options = bounded(options, calls=max_calls, tokens=max_tokens, usd=max_usd, seconds=max_seconds)
    if dry_run:
        from rlm.cli.dry_run import run_dry

        return run_dry(asked, source_open, options, as_json=json_)
    return run_count(asked, source_open, options, target, as_json=json_)
