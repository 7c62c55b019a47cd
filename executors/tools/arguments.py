"""Arguments of a tool call, held against its schema before they reach it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol, cast

from executors.errors import ValidationError
from executors.replies import JsonValue
from executors.tools.base import Arguments, Tool

__all__ = ["Unfit", "check_schema", "decoded", "read_arguments"]

_SHOWN: Final = 300  # characters of one complaint, which quotes the value
_COMPLAINTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Arguments that the tool cannot be called with."""

    reason: str
    """For the model: what is wrong, and where."""


def check_schema(tool: Tool) -> None:
    """Refuse a tool whose parameters are no JSON Schema.

    Raises:
        ValidationError: what is wrong with them.
    """
    _validator(tool.spec.canonical)


def read_arguments(tool: Tool, text: str) -> Arguments | Unfit:
    """Return the arguments that a text holds; nothing is repaired or unwrapped.

    A blank text is how many servers write a call without arguments.
    """
    from referencing.exceptions import Unresolvable  # as below

    try:
        value = decoded(text.strip() or "{}")
    except (ValueError, RecursionError) as error:
        return Unfit(reason=f"they are no JSON: {error}"[:_SHOWN])
    if not isinstance(value, dict):
        return Unfit(reason=f"they have to be an object, not {text[:80]}")
    try:
        complaints = list(islice(_complaints(tool, value), _COMPLAINTS))
    except (Unresolvable, RecursionError) as error:
        return Unfit(reason=f"they cannot be held against its schema: {error}"[:_SHOWN])
    return Unfit(reason="; ".join(complaints)) if complaints else value


def decoded(text: str) -> JsonValue:
    """Return the JSON value that a text is.

    Raises:
        ValueError: it is none; NaN and infinity are none either.
        RecursionError: it is nested too deeply.
    """
    value: JsonValue = _DECODER.decode(text)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


# ---------------------------------------------------------------- the library, seen from here


class _Error(Protocol):
    @property
    def json_path(self) -> str: ...
    @property
    def message(self) -> str: ...


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterator[_Error]: ...


def _complaints(tool: Tool, value: dict[str, JsonValue]) -> Iterator[str]:
    for error in _validator(tool.spec.canonical).iter_errors(value):
        where = error.json_path.removeprefix("$").removeprefix(".")
        text = f"{where}: {error.message}" if where else error.message
        yield text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@lru_cache(maxsize=512)
def _validator(canonical: str) -> _Validator:
    # Heavy, and only workers have tools.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    name, _, schema = json.loads(canonical)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ValidationError(
            f"the parameters of the tool {name!r} are no JSON Schema: {error.message}"[:_SHOWN],
            where=f"at {error.json_path}",
            hint="https://json-schema.org says what one looks like",
        ) from None
    # A registry of its own: the library's default fetches what a schema refers to.
    return cast("_Validator", kind(schema, registry=Registry()))
