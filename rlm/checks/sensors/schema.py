"""A result that has to be JSON of a given shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, Protocol, cast
from urllib.parse import unquote

from executors.errors import ValidationError
from executors.replies import Unparsed, read_json
from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.verdict import NeedsRevision, Satisfied, Verdict

__all__ = ["json_schema"]

_COMPLAINTS: Final = 10
_COUNTED: Final = 1_000
_COMPLAINT: Final = 300  # characters
_DATA: Final = frozenset({"const", "enum", "default", "examples"})  # no schemas stand below these


class _Error(Protocol):
    @property
    def json_path(self) -> str: ...
    @property
    def message(self) -> str: ...


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterator[_Error]: ...


def json_schema(schema: Mapping[str, object]) -> Sensor:
    """Return a sensor that is satisfied by JSON which fits a schema.

    A fence around it and reasoning before it are passed over; nothing is repaired. References
    within the schema are followed, others are never fetched.

    A `format` is a note, as the standard has it, and checked by a `pattern` alone. Patterns are
    searched for as Python's `re` does: keep them free of nested repeats, which take for ever.

    Args:
        schema: JSON Schema, of the draft that its `$schema` names, or 2020-12.

    Raises:
        ValidationError: it is no schema, or refers to what it does not hold.
    """
    validator = _validator(schema)

    def sense(result: str, context: SensorContext) -> Verdict:
        del context
        found = read_json(result)
        if isinstance(found, Unparsed):
            why = f"the result is not the JSON that was asked for: {found.reason}"
            return NeedsRevision(critique=f"{why} (at character {found.position})")
        errors = list(islice(validator.iter_errors(found.value), _COUNTED))
        amiss = [_worded(error) for error in sorted(errors, key=lambda error: error.json_path)]
        if not amiss:
            return Satisfied()
        more = [f"and {len(amiss) - _COMPLAINTS} more"] if len(amiss) > _COMPLAINTS else []
        lines = "\n- ".join([*amiss[:_COMPLAINTS], *more])
        return NeedsRevision(critique=f"the result does not fit the schema:\n- {lines}")

    return sense


def _worded(error: _Error) -> str:
    text = f"at {error.json_path}: {error.message}"
    return text if len(text) <= _COMPLAINT else f"{text[:_COMPLAINT]}…"


def _validator(schema: object) -> _Validator:
    # Heavy, and only where a schema is given.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    if not isinstance(schema, Mapping):
        raise ValidationError(
            f"schema={schema!r}"[:200], where="rlm.json_schema", hint="give a JSON Schema as a dict"
        )
    try:
        plain = json.loads(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(
            f"this is no JSON Schema: {error}"[:_COMPLAINT],
            where="rlm.json_schema",
            hint="give what JSON can hold: dicts, lists, texts, numbers, booleans, None",
        ) from None
    kind = validator_for(plain, default=Draft202012Validator)
    try:
        kind.check_schema(plain)
    except SchemaError as error:
        raise ValidationError(
            f"this is no JSON Schema: {error.message}"[:_COMPLAINT],
            where=f"at {error.json_path}",
            hint="json-schema.org says what one looks like",
        ) from None
    _check_references(plain)
    # A registry of its own: the library's default fetches what a schema refers to.
    return cast("_Validator", kind(plain, registry=Registry()))


def _check_references(schema: dict[str, object]) -> None:
    """See to it that what a schema refers to by a path of its own is there.

    One with ids of its own is left to the validator: there a path may begin elsewhere.
    """
    if '"$id"' in json.dumps(schema):
        return
    for reference in _references(schema):
        if not _is_held(schema, reference):
            raise ValidationError(
                f"this is no JSON Schema: it refers to {reference[:100]!r}, which it does not hold",
                where="rlm.json_schema",
                hint="put it under $defs and refer to '#/$defs/NAME'; nothing is fetched",
            )


def _references(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _references(item)
    if isinstance(value, dict):
        for key, held in cast("dict[str, object]", value).items():
            if key == "$ref" and isinstance(held, str):
                yield held
            elif key not in _DATA:
                yield from _references(held)


def _is_held(schema: object, reference: str) -> bool:
    if not reference.startswith("#/"):
        return reference.startswith("#")  # all of it, or an anchor: the validator knows those
    at = schema
    for raw in unquote(reference[2:]).split("/"):
        key = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and key in at:
            at = cast("dict[str, object]", at)[key]
        elif isinstance(at, list) and key.isdecimal() and int(key) < len(cast("list[object]", at)):
            at = cast("list[object]", at)[int(key)]
        else:
            return False
    return True
