"""Options that are declared once, and how their texts become values."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer

from corpus.questions import OneOf, Question, YesNo
from executors.errors import ValidationError

__all__ = [
    "Json",
    "KeyEnv",
    "ModelSpec",
    "OutFile",
    "choose",
    "encoder_spec",
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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write a row a record: .csv, .jsonl or .parquet."),
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
