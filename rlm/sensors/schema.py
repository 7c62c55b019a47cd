"""A result that has to be JSON of a given shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, Protocol, cast

from executors.errors import ValidationError
from executors.replies import Unparsed, read_json
from rlm.sensors.base import Sensor, SensorContext
from rlm.verdict import NeedsRevision, Satisfied, Verdict

__all__ = ["json_schema"]

_COMPLAINTS: Final = 10
_COUNTED: Final = 1_000
_COMPLAINT: Final = 300  # characters


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

    Args:
        schema: JSON Schema, of the draft that its `$schema` names, or 2020-12.

    Raises:
        ValidationError: it is no schema.
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
        raise ValidationError(f"schema={schema!r}"[:200], hint="give a JSON Schema as a dict")
    plain = json.loads(json.dumps(schema))
    kind = validator_for(plain, default=Draft202012Validator)
    try:
        kind.check_schema(plain)
    except SchemaError as error:
        raise ValidationError(
            f"this is no JSON Schema: {error.message}"[:_COMPLAINT],
            where=f"at {error.json_path}",
            hint="json-schema.org says what one looks like",
        ) from None
    # A registry of its own: the library's default fetches what a schema refers to.
    return cast("_Validator", kind(plain, registry=Registry()))
