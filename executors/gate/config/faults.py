"""What is wrong with a configuration, as our error: which key, which value, which choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from executors.boundary import Returned, attempt_now
from executors.errors import ConfigError
from executors.gate.config.config import GateConfig

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["config_error"]

_SHOWN: Final = 120
_CHOICES: Final = {
    "list_type": "a list of texts; [] is one",
    "tuple_type": "a list of texts; [] is one",
    "set_type": "a list of texts; [] is one",
    "string_type": "a text, in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "callable_type": "a function; a file cannot hold one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    kind: str
    way: tuple[str, ...]
    value: object
    message: str
    told: Mapping[str, object]


def config_error(refused: ValidationError, *, where: str) -> ConfigError:
    """Return the first fault that was found, in three lines.

    Args:
        where: the file, or whatever the configuration came as.
    """
    faults = [
        _Fault(
            kind=one["type"],
            way=_way(one["loc"]),
            value=one["input"],
            message=one["msg"],
            told=one.get("ctx", {}),
        )
        for one in refused.errors(include_url=False)
    ]
    first = faults[0]
    key = ".".join(first.way) or "it"
    others = len({one.way for one in faults}) - 1
    more = f" (and {others} more)" if others else ""
    if first.kind == "extra_forbidden":
        what = f"{key!r} is no key of a gate's configuration{more}"
        return ConfigError(what, where=where, hint=_keys(first.way))
    what = f"{key}={_quoted(first.value)} is not accepted{more}"
    return ConfigError(what, where=where, hint=_hint(first))


def _way(place: Iterable[object]) -> tuple[str, ...]:
    """Return the keys that lead to a fault, without the names of types that were tried there."""
    return tuple(takewhile(lambda part: part != "str" and "[" not in part, map(str, place)))


def _hint(fault: _Fault) -> str:
    if fault.kind == "value_error":
        return str(fault.told.get("error", fault.message))
    if fault.kind == "literal_error":
        return f"give one of {fault.told.get('expected')}"
    if (choice := _CHOICES.get(fault.kind)) is not None:
        return f"give {choice}"
    return fault.message.replace("Input should", "it has to").replace("Input", "it")


def _keys(way: tuple[str, ...]) -> str:
    model: type[BaseModel] = GateConfig
    for part in way[:-1]:
        field = model.model_fields.get(part)
        inner = None if field is None else field.annotation
        if not isinstance(inner, type) or not issubclass(inner, BaseModel):
            break
        model = inner
    known = sorted(model.model_fields)
    near = get_close_matches(_snake(way[-1]), known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"{meant}choices: {', '.join(known)}"


def _snake(key: str) -> str:
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in key[:_SHOWN])


def _quoted(value: object) -> str:
    got = attempt_now(repr, value)  # of a caller's own class, perhaps
    text = got.value if isinstance(got, Returned) and isinstance(got.value, str) else "…"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
