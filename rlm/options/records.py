"""Options as JSON: what a later session of a run needs to go on as the one before.

What JSON cannot hold is an object of the caller's, and has to be given again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import cast

from executors.endpoint.buckets import Limits
from executors.errors import ValidationError
from executors.gate.allowance import Caps
from executors.gate.audit.secret_keys import SecretKeys
from executors.models.prices import Price, PriceTable
from executors.replies import JsonValue
from executors.secrets import scrub

__all__ = ["holds_secret", "is_recordable", "record_of", "value_of"]

_EACH = "each"
_BY_NAME = "by name"
_SECRET_KEYS = SecretKeys()


def is_recordable(value: object) -> bool:
    """Whether a value comes back from JSON as it was."""
    kinds = (str, int, float, tuple, Caps, Limits, Price, PriceTable)
    return value is None or isinstance(value, kinds)


def holds_secret(value: JsonValue) -> bool:
    """Whether something in a value is known to be a secret, looks like one, or is called one."""
    waiting, seen = [value], set[int]()
    while waiting:
        match one := waiting.pop():
            case str():
                if scrub(one) != one:
                    return True
            case dict() | list() if id(one) in seen:
                pass
            case dict():
                seen.add(id(one))
                if any(name in _SECRET_KEYS and inner is not None for name, inner in one.items()):
                    return True
                waiting += [*one, *one.values()]
            case list():
                seen.add(id(one))
                waiting += one
            case _:
                pass
    return False


def record_of(value: object) -> JsonValue:
    """Return a value that is recordable as JSON."""
    match value:
        case tuple():
            return [str(item) for item in cast("tuple[object, ...]", value)]
        case Caps() | Limits():
            return _fields(value)
        case Price():
            return {_EACH: _fields(value)}
        case PriceTable():
            return {_BY_NAME: {name: _fields(price) for name, price in value.prices.items()}}
        case _:
            return cast("JsonValue", value)


def value_of(name: str, value: object) -> object:
    """Return the option of a name from what `record_of` made of it.

    Raises:
        ValidationError: it is no such value.
    """
    try:
        match name, value:
            case "terms", list():
                return tuple(cast("list[object]", value))
            case "caps", dict():
                return _caps(cast("dict[str, object]", value))
            case "limits", dict():
                return Limits(**cast("dict[str, float]", value))
            case "prices", dict():
                return _prices(cast("dict[str, Mapping[str, object]]", value))
            case _:
                return value
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ValidationError(
            f"the run recorded {name}={value!r}"[:200],
            where="its manifest",
            hint=f"give {name} again, with the command or the call that goes on with the run",
        ) from None


def _fields(value: Caps | Limits | Price) -> dict[str, JsonValue]:
    """Return the fields by name; amounts of USD as text, so that no digit is lost."""
    found: dict[str, JsonValue] = {}
    for field in fields(value):
        held: object = getattr(value, field.name)
        if held is None and field.name.startswith("long_"):  # a price that most models do not have
            continue
        found[field.name] = str(held) if isinstance(held, Decimal) else cast("JsonValue", held)
    return found


def _caps(found: Mapping[str, object]) -> Caps:
    calls, tokens, usd, seconds = (str(found[n]) for n in ("calls", "tokens", "usd", "seconds"))
    return Caps(calls=int(calls), tokens=int(tokens), usd=Decimal(usd), seconds=float(seconds))


def _prices(found: Mapping[str, Mapping[str, object]]) -> Price | PriceTable:
    if _EACH in found:
        return _price(found[_EACH])
    by_name = cast("Mapping[str, Mapping[str, object]]", found[_BY_NAME])
    return PriceTable({name: _price(price) for name, price in by_name.items()})


def _price(found: Mapping[str, object]) -> Price:
    given = {name: None if usd is None else Decimal(str(usd)) for name, usd in found.items()}
    above = given.pop("long_above", None)
    return Price(
        **cast("dict[str, Decimal]", given), long_above=None if above is None else int(above)
    )
