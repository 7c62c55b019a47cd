"""Options that are declared once, and how their texts become values."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer

from corpus.questions import OneOf, Question, YesNo
from executors.endpoint.buckets import Limits
from executors.errors import ValidationError
from executors.models.prices import Price

__all__ = [
    "BudgetText",
    "DryRun",
    "Engine",
    "GateFile",
    "Json",
    "KeyEnv",
    "MaxCalls",
    "MaxSeconds",
    "MaxTokens",
    "MaxUsd",
    "ModelSpec",
    "OutFile",
    "PriceText",
    "Rpm",
    "Tpm",
    "choose",
    "encoder_spec",
    "limits_of",
    "price_of",
    "refuse_dry",
    "require_given",
    "split_list",
    "typed_question",
]

C = TypeVar("C", bound=str)

ModelSpec = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="SPEC", help="Model to ask; `rlm models` says how to name one."
    ),
]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        "--key-env", metavar="NAME", help="Environment variable with the key of a custom URL."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what it would take; ask and pay nothing.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="local, dask, dask:WORKERS or dask://HOST:PORT; who does the work.",
    ),
]
GateFile = Annotated[
    str | None,
    typer.Option(
        "--gate",
        metavar="FILE",
        help="Gate that every call has to pass: its configuration, as .yaml, .toml or .json.",
    ),
]
BudgetText = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="usd=N,…",
        help="What a run that goes on may have in all: usd, calls, tokens. Your word: written down.",
    ),
]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write a row a record: .csv, .jsonl or .parquet."),
]

PriceText = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN,OUT",
        help="USD per million tokens of the model: IN,OUT[,CACHE_READ[,CACHE_WRITE]].",
    ),
]
Rpm = Annotated[
    float | None,
    typer.Option(
        "--rpm",
        metavar="N",
        help="Calls a minute that the server allows; else its refusals tell.",
    ),
]
Tpm = Annotated[
    float | None,
    typer.Option(
        "--tpm",
        metavar="N",
        help="Tokens a minute that the server allows; else its refusals tell.",
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", metavar="N", help="Bound of the run: calls.  [default: 100000]"),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", help="Bound of the run: tokens.  [default: 200000000]"
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option("--max-usd", metavar="USD", help="Bound of the run: USD.  [default: 10]"),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", metavar="S", help="Bound of the run: seconds.  [default: 86400]"),
]

# What a template leaves behind when a value of it was not given.
_PLACEHOLDER = re.compile(r"\{\{\s*[A-Za-z_][\w.\[\]'\"]*\s*\}\}")


def split_list(text: str | None, *, option: str) -> tuple[str, ...]:
    """Split `a,b,"c, d"` at its commas, as one line of CSV.

    Raises:
        ValidationError: a quote that is not closed, more than one line, or nothing in it.
    """
    if text is None:
        return ()
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ValidationError(
            f"{option}={text!r} is no list: {error}",
            hint=f"separate by commas and quote what holds one, as in {option} 'a,\"b, c\",d'",
        ) from None
    items = tuple(item.strip() for row in rows for item in row if item.strip())
    if not items:
        raise ValidationError(f"{option}={text!r} names nothing", hint=f"as in {option} 'a,b'")
    return items


def price_of(text: str | None) -> Price | None:
    """Return the price that `IN,OUT[,CACHE_READ[,CACHE_WRITE]]` states.

    Raises:
        ValidationError: it states none.
    """
    if text is None:
        return None
    try:
        amounts = [Decimal(part.strip()) for part in text.split(",")]
        if len(amounts) not in {2, 3, 4}:
            raise ValueError(text)
    except (ArithmeticError, ValueError):
        raise ValidationError(
            f"--price={text!r} is no price",
            hint="give USD per million tokens, as in --price 0.40,1.60 or --price 0.40,1.60,0.10",
        ) from None
    read, write = [*amounts[2:], None, None][:2]
    return Price(input=amounts[0], output=amounts[1], cache_read=read, cache_write=write)


def limits_of(rpm: float | None, tpm: float | None) -> Limits | None:
    """Return the limits that were named, None where none was.

    Raises:
        ValidationError: one is no limit.
    """
    return None if rpm is None and tpm is None else Limits(rpm=rpm, tpm=tpm)


def refuse_dry(**values: object) -> None:
    """Refuse options that a dry run passes over.

    Raises:
        ValidationError: one of them is given.
    """
    for name, value in values.items():
        if value is not None:
            raise ValidationError(
                f"--{name} has no effect: a dry run judges nothing", hint="leave one of the two out"
            )


def require_given(**values: object) -> None:
    """Refuse options that are given and empty, as a variable of a script that was never set.

    Raises:
        ValidationError: one of them is; an empty path would be the working directory.
    """
    for name, value in values.items():
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        if any(isinstance(item, str) and not item.strip() for item in items):
            option = "SOURCE" if name == "source" else f"--{name.strip('_').replace('_', '-')}"
            raise ValidationError(f"{option} is empty", hint="give a value, or leave it out")


def choose(value: str, choices: Sequence[C], *, option: str) -> C:
    """Return the choice that a text names.

    Raises:
        ValidationError: it names none of them.
    """
    for choice in choices:
        if value == choice:
            return choice
    raise ValidationError(f"{option}={value!r}", hint=f"choose one of {', '.join(choices)}")


def encoder_spec(name: str | None) -> str | None:
    """Return the spec of an encoder that may be named with or without its kind."""
    if name is None or name.partition(":")[0] == "encoder":
        return name
    return f"encoder:{name}"


def typed_question(text: str, *, one_of: str | None, verbatim: bool) -> Question:
    """Return the question, unless it is a template whose value was never filled in.

    Raises:
        ValidationError: it is blank, its labels are too few, or it holds `{{ name }}`, which a
            model would be asked as it stands.
    """
    found = None if verbatim else _PLACEHOLDER.search(text)
    if found is not None:
        raise ValidationError(
            f"the question holds the unfilled placeholder {found[0]!r}",
            where=f"in {text!r}",
            hint="questions are asked verbatim: fill it in, or ask it so with --verbatim",
        )
    if one_of is None:
        return YesNo(text=text)
    return OneOf(text=text, labels=split_list(one_of, option="--one-of"))
