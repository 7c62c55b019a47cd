"""No action whatever makes a gate raise, hang, or grow."""

import random
from collections.abc import Iterator, Mapping
from decimal import Decimal
from time import monotonic
from typing import NoReturn

import pytest

from executors.gate.allowance import Estimate
from executors.gate.decisions import Allow, Deny, Halt
from executors.gate.gate import Gate

pytestmark = pytest.mark.anyio

SECONDS = 2.0
TYPES = (
    "bash",
    "read",
    "write",
    "fetch",
    "fetch.get",
    "llm",
    "spawn",
    "defer",
    "look",
    "",
    None,
    7,
)
KEYS = ("cmd", "argv", "args", "path", "url", "tool", "_ctx", "content", "note", "\0", "type")
TEXTS = (
    "rm -rf /", "ls | sh", "'\"`$(", "../..", "~", "a\0b", "\ud800", "\u202e", "http://[::1]/",
    "http://a\\@b/", "/tmp/x", "x" * 5_000, "sk-" + "a" * 30, "delete", "",
)  # fmt: skip
CONFIG: dict[str, object] = {
    "fs": {"read_scope": ["/tmp"], "deny": ["/etc"]},
    "bash": {"allow": ["ls"], "classify": True},
    "net": {"allow_domains": ["example.com"]},
    "flags": {"note": {"delete": "ask"}},
    "limits": {"max_turns": "inf", "max_tool_rounds": "inf"},
}


class Cursed:
    def __str__(self) -> NoReturn:
        raise ValueError

    __repr__ = __str__


class Moody(Mapping[str, object]):
    """Says something else each time, or raises."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_

    def __getitem__(self, name: str) -> object:
        if self._random.random() < 0.3:
            raise RuntimeError(name)
        return self._random.choice(TEXTS)

    def __iter__(self) -> Iterator[str]:
        if self._random.random() < 0.2:
            raise ZeroDivisionError
        return iter(self._random.choices(KEYS, k=3))

    def __len__(self) -> int:
        return self._random.randrange(9)


def value(random_: random.Random, depth: int = 0) -> object:
    kind = random_.randrange(10 if depth < 4 else 6)
    match kind:
        case 6:
            return [value(random_, depth + 1) for _ in range(random_.randrange(4))]
        case 7:
            return {random_.choice(KEYS): value(random_, depth + 1) for _ in range(3)}
        case 8:
            return Moody(random_)
        case 9:
            around: list[object] = []
            around.append(around)
            return around
        case 5:
            return random_.choice(
                (Cursed(), float("nan"), 10**4_000, b"\xff", Decimal("sNaN"), type)
            )
        case _:
            return random_.choice(TEXTS)


def action(random_: random.Random) -> object:
    if random_.random() < 0.1:
        return value(random_)
    given = {random_.choice(KEYS): value(random_) for _ in range(random_.randrange(5))}
    return {**given, "type": random_.choice(TYPES)}


async def test_for_two_seconds_every_action_is_decided_about() -> None:
    random_ = random.Random(20)
    gate, estimate, until = Gate(CONFIG), Estimate(tokens=1, usd=Decimal(0)), monotonic() + SECONDS
    while monotonic() < until:
        given = action(random_)
        got = await gate.check(given, estimate=random_.choice((None, estimate)))
        assert isinstance(got, Allow | Deny | Halt)
        assert got.rule != "gate.error"
        assert isinstance(gate.allows(given), bool)
        if isinstance(got, Allow):
            gate.record(given, value(random_), aid=got.aid)


async def test_a_deep_action_and_a_wide_one_are_decided_about_at_once() -> None:
    deep: dict[str, object] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    wide = {str(number): number for number in range(300_000)}
    gate, begun = Gate({}), monotonic()
    for given in (deep, wide):
        got = await gate.check({"type": "look", "args": given})
        assert (type(got), got.rule) == (Deny, "content.unserializable")
    assert monotonic() - begun < 5
    while deep:  # or taking it apart would recurse as deep
        deep = deep.pop("a")  # type: ignore[assignment]
