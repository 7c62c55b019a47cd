"""Values of every odd kind, made of a seed: what a gate may be handed by mistake or on purpose."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final, cast

__all__ = ["odd_action"]


def _no(*_: object) -> object:
    raise RuntimeError("no")


def _class(base: type, *names: str) -> Callable[..., object]:
    """Make a class whose methods of these names raise."""
    return cast(
        "Callable[..., object]", type(f"Odd{base.__name__}", (base,), dict.fromkeys(names, _no))
    )


_SHOWN = ("__repr__", "__str__", "__eq__", "__hash__", "__format__")
_READ = ("__iter__", "__getitem__", "__len__", "__contains__")
Hostile = _class(object, *_SHOWN, *_READ, "__call__", "__index__", "__float__", "__fspath__")
Text = _class(str, *_SHOWN, *_READ, "encode", "split", "startswith", "lower", "join")
Whole = _class(int, *_SHOWN, "__index__", "__int__", "__bool__", "bit_length")
Broken = _class(float, *_SHOWN, "__float__", "is_integer")
Bytes = _class(bytes, *_SHOWN, *_READ, "decode")
Items = _class(list, *_SHOWN, *_READ, "copy")
Pair = _class(tuple, *_SHOWN, *_READ)
Fields = _class(dict, *_SHOWN, *_READ, "items", "keys", "values", "get")
# A class of classes that raises as well, down to its name.
_Meta = type(
    "Meta",
    (type,),
    {
        **dict.fromkeys((*_SHOWN, "__instancecheck__", "__subclasscheck__"), _no),
        "__name__": property(_no),
    },
)
Odd = cast("Callable[..., object]", _Meta("Odd", (), {"__class__": property(_no)}))


class Lying(Mapping[str, object]):
    """A mapping whose keys are not there, and which says more of them than it has."""

    def __getitem__(self, key: str) -> object:
        if key == "cmd":
            return "rm -rf /"
        raise LookupError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["cmd", "x", "x", 3])  # type: ignore[list-item]

    def __len__(self) -> int:
        return 5


class Silent(Mapping[str, object]):
    """A mapping that cannot be gone through."""

    def __getitem__(self, key: str) -> object:
        return key

    def __iter__(self) -> Iterator[str]:
        raise MemoryError

    def __len__(self) -> int:
        return 0


class Shrinking(dict[str, object]):
    """A dict that changes while it is read."""

    def __getitem__(self, key: str) -> object:
        self.clear()
        return key


def _nested(random: Random) -> object:
    depth = random.choice((3, 63, 64, 65, 1_000, 50_000))
    value: object = "x"
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def _cycle(_: Random) -> object:
    value: list[object] = []
    value.append({"again": value})
    return value


def _shared(_: Random) -> object:
    value: list[object] = ["x" * 100]
    for _n in range(20):
        value = [value, value]
    return value


def _digits(random: Random) -> object:
    return random.choice((1, -1)) * (1 << random.choice((64, 9_999, 10_001, 200_000)))


_LEAVES: Final[tuple[Callable[[Random], object], ...]] = (
    lambda random: random.choice(
        ("ls", "rm -rf /", "/etc/passwd", "http://127.0.0.1/", "", "\0", "é")
    ),
    lambda random: random.choice(
        ("\ud800", "x\udfff/..", "a\nb", "\u202e", "~root", "*", "{", "%s")
    ),
    lambda random: random.choice(
        (None, True, 0, -1, 1.5, float("nan"), float("-inf"), -0.0, 1e308)
    ),
    lambda random: random.randbytes(random.randrange(8)),
    lambda random: random.choice(
        (bytearray(b"x"), memoryview(b"x"), {1, 2}, frozenset("a"), 1j, ...)
    ),
    lambda _: Hostile(),
    lambda _: Odd(),
    lambda _: Odd,
    lambda _: Text("rm -rf /"),
    lambda _: Whole(7),
    lambda _: Broken(7),
    lambda _: Bytes(b"rm -rf /"),
    lambda _: Pair(("rm", "-rf", "/")),
    lambda _: Items(["rm", "-rf", "/"]),
    lambda _: Fields(cmd="ls"),
    lambda _: Lying(),
    lambda _: Silent(),
    lambda _: Shrinking(a=1, b=2),
    lambda _: (n for n in range(3)),
    lambda _: iter([1]),
    lambda _: OrderedDict[str, int](a=1),
    lambda _: UserDict({"a": 1}),
    lambda _: Exception("x"),
    lambda _: lambda: 1,
    _digits,
)
_RARE: Final[tuple[Callable[[Random], object], ...]] = (
    _nested,
    _cycle,
    _shared,
    lambda _: "x" * 200_000,
    lambda _: ["x"] * 200_000,
)
_KINDS: Final = (
    "bash",
    "read",
    "write",
    "edit",
    "fetch",
    "fetch.get",
    "llm",
    "spawn",
    "defer",
    "t",
)
_NAMES: Final = (
    "cmd",
    "command",
    "argv",
    "path",
    "url",
    "uri",
    "content",
    "args",
    "tool",
    "_ctx",
    "x",
)


def _key(random: Random) -> object:
    if random.random() < 0.8:
        return random.choice(_NAMES)
    return random.choice((1, None, True, 2.5, ("a",), b"x", "\ud800", "x" * 300, Exception))


def _value(random: Random, depth: int = 0) -> object:
    chance = random.random()
    if chance < 0.0005 and depth < 2:
        return random.choice(_RARE)(random)
    if chance < 0.2 and depth < 3:
        return {_key(random): _value(random, depth + 1) for _ in range(random.randrange(4))}
    if chance < 0.35 and depth < 3:
        values = [_value(random, depth + 1) for _ in range(random.randrange(4))]
        return values if random.random() < 0.8 else tuple(values)
    return random.choice(_LEAVES)(random)


def odd_action(random: Random) -> object:
    """Return an action, or something that is none: mostly mappings with a type that is known."""
    if random.random() < 0.05:
        return _value(random)
    given: dict[object, object] = {"type": random.choice(_KINDS)}
    if random.random() < 0.1:
        given["type"] = _value(random)
    for _ in range(random.randrange(5)):
        given[_key(random)] = _value(random)
    return given
