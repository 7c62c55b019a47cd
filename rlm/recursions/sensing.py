"""Sensors that are named in words, as on the command line; and those that look into the corpus."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from corpus.spool import Spool
from executors.errors import ConfigError, UsageError, ValidationError
from rlm.checks.refinement import RefineLeaf
from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.sensors.cited import citations
from rlm.checks.sensors.schema import json_schema

__all__ = ["CorpusSensor", "bound_sensor", "leaf_sensor"]


class CorpusSensor:
    """A sensor that is made once the corpus of the run is read.

    Args:
        make: returns the sensor over the records.
    """

    def __init__(self, make: Callable[[Spool], Sensor]) -> None:
        self.make = make

    def over(self, spool: Spool | None) -> Sensor:
        """Return the sensor that looks into these records.

        Raises:
            ConfigError: there are none.
        """
        if spool is None:
            raise ConfigError(
                "the sensor looks into the records, and there is no corpus",
                hint="give one with corpus= (--corpus), or leave the sensor out",
            )
        return self.make(spool)

    def __call__(self, result: str, context: SensorContext) -> object:
        """Refuse to judge: nobody has said over which records."""
        raise ConfigError(
            "the sensor looks into records, and no run has bound it to any",
            hint="hand it to rlm.recurse with a corpus",
        )


def bound_sensor(how: RefineLeaf | None, spool: Spool | None) -> RefineLeaf | None:
    """Return how leaves try again, with a sensor that looks into the records of this very run.

    A new one: another run may share the same `RefineLeaf`, and has other records.

    Raises:
        ConfigError: the sensor looks into records, and there are none.
    """
    if how is None or not isinstance(how.sensor, CorpusSensor):
        return how
    return replace(how, sensor=how.sensor.over(spool))


def leaf_sensor(spec: str) -> RefineLeaf:
    """Return the refinement that `json-schema:FILE` or `citations` names.

    Raises:
        UsageError: it names none, or the file holds no schema.
    """
    kind, _, rest = spec.partition(":")
    if kind == "json-schema" and rest:
        return RefineLeaf(sensor=_schema(Path(rest)))
    if spec == "citations":
        return RefineLeaf(sensor=CorpusSensor(citations))
    raise ValidationError(
        f"--sensor={spec!r} names no sensor", hint="choose json-schema:FILE or citations"
    )


def _schema(path: Path) -> Sensor:
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"the schema {str(path)!r} cannot be read: {error.strerror or error}",
            where="--sensor",
            hint="name a file that holds a JSON Schema",
        ) from None
    except ValueError as error:
        raise ValidationError(
            f"the schema {str(path)!r} is no JSON: {error}",
            where="--sensor",
            hint="name a file that holds a JSON Schema",
        ) from None
    return json_schema(cast("dict[str, object]", found))
