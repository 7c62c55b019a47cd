"""JSON on one line: fast where it can be, and never at a loss for half a character."""

from __future__ import annotations

import json
from math import isfinite
from typing import cast

import orjson

__all__ = ["decode", "encode", "exact", "inexact"]


def encode(value: object) -> bytes:
    """Return a value as compact JSON that ends its line.

    Half a character (a lone surrogate) is written as its escape; two halves that meet are read
    back as the character they make.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a character, or an integer of more than 64 bits
        return json.dumps(value, separators=(",", ":"), default=str).encode("ascii") + b"\n"


def decode(raw: bytes) -> object:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is none.
    """
    try:
        return cast("object", orjson.loads(raw))
    except ValueError:
        try:
            return cast("object", json.loads(raw))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def exact(number: float) -> float | str:
    """Return a number as JSON can hold it: the infinite ones by name."""
    return number if isfinite(number) else repr(float(number))


def inexact(value: object) -> float:
    """Return the number that `exact` gave.

    Raises:
        TypeError, ValueError: it is none.
    """
    return float(cast("float | str", value))
