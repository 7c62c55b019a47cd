"""A recorded failure: frozen as JSON, thawed so that it can be raised again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from executors.errors import ModelError
from executors.secrets import scrub

__all__ = ["freeze", "thaw"]

_NESTED: Final = "$"  # an attribute that is itself a failure carries it before its name


def freeze(error: ModelError) -> dict[str, object]:
    """Return class and attributes of an error as JSON; secrets that a server echoed are masked."""
    frozen: dict[str, object] = {"$": error.code}
    for name, value in vars(error).items():
        match value:
            case ModelError():
                frozen[_NESTED + name] = freeze(value)
            case tuple() if all(
                isinstance(one, ModelError) for one in cast("tuple[object, ...]", value)
            ):
                frozen[_NESTED + name] = [
                    freeze(one) for one in cast("tuple[ModelError, ...]", value)
                ]
            case str():
                frozen[name] = scrub(value)
            case None | bool() | int() | float():
                frozen[name] = value
            case _:
                frozen[name] = scrub(str(value))
    return frozen


def thaw(frozen: object) -> ModelError:
    """Return the error that was frozen; one of a kind that a newer version made is a ModelError.

    Raises:
        KeyError, TypeError: it is no frozen error.
    """
    if not isinstance(frozen, dict):
        raise TypeError("a frozen failure is an object")
    fields = cast("dict[str, object]", frozen)
    cls = _CLASSES.get(str(fields["$"]), ModelError)
    what = str(fields["what"])
    error = cls.__new__(cls, what)
    Exception.__init__(error, what)
    for name, value in fields.items():
        if name.startswith(_NESTED) and name != "$":
            vars(error)[name[1:]] = _thawed(value)
        elif name != "$":
            vars(error)[name] = value
    return error


def _thawed(value: object) -> ModelError | tuple[ModelError, ...]:
    if isinstance(value, list):
        return tuple([thaw(one) for one in cast("list[object]", value)])
    return thaw(value)


def _all(cls: type[ModelError]) -> Iterator[type[ModelError]]:
    yield cls
    for below in cls.__subclasses__():
        yield from _all(below)


_CLASSES: Final = {cls.code: cls for cls in _all(ModelError)}
