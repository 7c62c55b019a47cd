"""Plain copies of whatever came: nothing of a caller's own runs again once it is copied.

What is copied may be of any class, and lie, raise or never end. Classes are asked for their real
bases alone, texts and numbers are read by the methods of the builtin types, and all of it is
bounded: values, characters and depth, each visit counted, so that a value that is shared many times
costs what it would take to write it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import getitem
from typing import Final, cast

from executors.boundary import Returned, attempt_now

__all__ = ["Bounds", "Copier", "Opaque", "kind_of", "text_of"]

# Of the base classes, which run no other code.
_PAIRS: Final = cast("Callable[[object], Iterable[tuple[object, object]]]", vars(dict)["items"])
_OF_LIST: Final = cast("Callable[[object], Iterator[object]]", vars(list)["__iter__"])
_OF_TUPLE: Final = cast("Callable[[object], Iterator[object]]", vars(tuple)["__iter__"])
_BITS: Final = 10_000
"""Of a number; some 3,000 digits."""
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Stands for a value that is no JSON."""

    kind: str
    """The name of its class."""

    def __str__(self) -> str:
        return f"<{self.kind}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is copied."""

    values: int = 20_000
    """Keys, items and leaves."""
    characters: int = 64_000_000
    """Of texts, keys and bytes."""
    depth: int = 64


class Copier:
    """Copies values, and remembers the first thing that could not be copied as it is.

    Attributes:
        fault: what that was, and where; None as long as all of it is plain.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.fault: str | None = None
        self._values = bounds.values
        self._characters = bounds.characters
        self._depth = bounds.depth
        self._way: list[str] = []
        self._around: list[int] = []

    def members(self, given: object) -> Iterator[tuple[str, object]] | None:
        """Return the keys of a mapping, each with what stands there uncopied; None if it is none."""
        pairs = self._pairs(type(given), given)
        return None if pairs is None else self._within(given, pairs)

    def copy(self, value: object) -> object:
        """Return a copy: None, bool, int, float, str, bytes, list, dict with text keys, or Opaque."""
        self._values -= 1
        if self._values < 0:
            return self._spoilt("it holds too many values", value)
        kind = type(value)
        if value is None or kind is bool or kind is float or kind is Opaque:
            return value
        if kind is str:
            return self._text(cast("str", value))
        if issubclass(kind, int):
            return self._number(int.__index__(cast("int", value)))
        if issubclass(kind, float):
            return float.__float__(cast("float", value))
        if issubclass(kind, bytes):
            return self._bytes(cast("bytes", value))
        text = text_of(value)
        return self._container(kind, value) if text is None else self._text(text)

    # ---------------------------------------------------------------- leaves

    def _text(self, text: str) -> object:
        self._characters -= len(text)
        return text if self._characters >= 0 else self._spoilt("it is too long", text)

    def _bytes(self, given: bytes) -> object:
        self._characters -= bytes.__len__(given)
        if self._characters < 0:
            return self._spoilt("it is too long", given)
        return bytes.__getitem__(given, slice(None))

    def _number(self, number: int) -> object:
        if number.bit_length() <= _BITS:
            return number
        return self._spoilt("it holds a number of thousands of digits", number)

    # ---------------------------------------------------------------- containers

    def _container(self, kind: type[object], value: object) -> object:
        if len(self._around) >= self._depth:
            return self._spoilt("it is nested too deeply", value)
        if id(value) in self._around:
            return self._spoilt("it contains itself", value)
        if issubclass(kind, list):
            return self._items(value, _OF_LIST(value))
        if issubclass(kind, tuple):
            return self._items(value, _OF_TUPLE(value))
        found = self._pairs(kind, value)
        if found is None:
            return self._spoilt(f"its {kind_of(value)} is no JSON", value)
        return {key: self.copy(one) for key, one in self._within(value, found)}

    def _items(self, value: object, items: Iterator[object]) -> list[object]:
        some = list(islice(items, self._most))  # before code of a caller's can change it
        return [self.copy(one) for _, one in self._within(value, enumerate(some))]

    def _within(
        self, value: object, pairs: Iterable[tuple[object, object]]
    ) -> Iterator[tuple[str, object]]:
        """Go through the members of a container, and know on the way where this is."""
        self._around.append(id(value))
        seen: set[str] = set()
        for key, one in pairs:
            name = self._key(key)
            self._way.append(name)
            if name in seen:
                self._spoilt("two of its keys read the same", one)
            seen.add(name)
            yield name, one
            self._way.pop()
        self._around.pop()

    @property
    def _most(self) -> int:
        return max(self._values, 0) + 1

    def _pairs(self, kind: type[object], value: object) -> list[tuple[object, object]] | None:
        if issubclass(kind, dict):
            stored = list(islice(_PAIRS(value), self._most))
            if kind is dict:
                return stored
            return [(key, self._read(value, key, one)) for key, one in stored]
        if attempt_now(issubclass, kind, Mapping) != Returned(value=True):
            return None
        most = self._most
        keys = attempt_now(lambda: list(islice(iter(cast("Iterable[object]", value)), most)))
        if not isinstance(keys, Returned):
            self._spoilt(f"its keys cannot be read ({kind_of(keys.error)})", value)
            return []
        return [(key, self._read(value, key, None)) for key in cast("list[object]", keys.value)]

    def _read(self, value: object, key: object, stored: object) -> object:
        """Read as whoever acts on it would; what cannot be read so is what the base class stores."""
        got = attempt_now(getitem, value, key)
        if isinstance(got, Returned):
            return got.value
        self._spoilt(f"{self._key(key)!r} in it cannot be read ({kind_of(got.error)})", value)
        return stored

    def _key(self, key: object) -> str:
        text = text_of(key)
        if text is not None:
            self._characters -= len(text)
            return text
        if key is None or type(key) in (bool, int, float):
            simple = self.copy(key)
            return str(simple)
        self._spoilt(f"its key, a {kind_of(key)}, is no JSON", key)
        return f"<{kind_of(key)}>"

    # ---------------------------------------------------------------- faults

    def _spoilt(self, why: str, value: object) -> Opaque:
        if self.fault is None:
            way = ".".join(self._way)
            self.fault = f"{why} (at {_cut(way)!r})" if way else why
        return Opaque(kind=kind_of(value))


def text_of(value: object) -> str | None:
    """Return the characters of a text, whatever its class says of them; None if it is none."""
    kind = type(value)
    if kind is str:
        return cast("str", value)
    return str.__str__(cast("str", value)) if issubclass(kind, str) else None


def kind_of(value: object) -> str:
    """Return the name of a value's class, which cannot raise."""
    name = type.__dict__["__name__"].__get__(type(value))
    return _cut(cast("str", name))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
