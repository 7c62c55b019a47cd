"""A configuration from wherever it stands: an object, a mapping, or a file of YAML, TOML or JSON."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from pydantic import ValidationError as Refused

from executors.errors import ConfigError
from executors.gate.config.config import GateConfig
from executors.gate.config.faults import config_error
from executors.gate.config.files import read_text
from executors.gate.config.yaml_text import read_yaml

__all__ = ["load_config"]

_SUFFIXES: Final = (".yaml", ".yml", ".toml", ".json")


def load_config(given: object) -> GateConfig:
    """Return the configuration that a value is, or that stands in the file it names.

    Raises:
        ConfigError: it cannot be read, or holds a key or a value that is none.
    """
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, Mapping):
        return _checked(dict(cast("Mapping[object, object]", given)), "the gate's configuration")
    if isinstance(given, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", given))
        return _checked(_parsed(path, read_text(path)), str(path))
    raise ConfigError(
        f"{given!r}"[:200] + " is no configuration of a gate",
        hint="give a GateConfig, a mapping of its sections, or the name of a file",
    )


def _checked(given: object, where: str) -> GateConfig:
    try:
        return GateConfig.model_validate(given)
    except Refused as refused:
        raise config_error(refused, where=where) from None


def _parsed(path: Path, text: str) -> object:
    try:
        match path.suffix.lower():
            case ".yaml" | ".yml":
                found = read_yaml(text)
            case ".toml":
                found = tomllib.loads(text)
            case ".json":
                found = json.loads(text, object_pairs_hook=_once)
            case other:
                raise ConfigError(
                    f"{other!r} is no kind of file that a gate reads",
                    where=str(path),
                    hint=f"name it {' or '.join(_SUFFIXES)}",
                )
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(
            f"it cannot be read as {path.suffix.lower()}: {said[:300]}",
            where=str(path),
            hint="check its syntax there",
        ) from None
    return {} if found is None else found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} stands twice in one object")
        found[key] = value
    return found
