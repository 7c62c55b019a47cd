"""Tool calls as providers write them, read strictly into one neutral shape. Pure.

Nothing is repaired: a call whose arguments are no JSON was not made. One of them voids its whole
round, since the others were written in the belief that it would run too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from executors.errors import ValidationError
from executors.messages import MalformedCall, ModelRequest, ToolCall
from executors.replies import JsonValue, Unparsed, canonical_json, read_strictly

__all__ = ["CHOICES", "RawCall", "check_tools", "read_calls"]

CHOICES: Final = ("auto", "required", "none")
"""What a request may say of its tools besides the name of one."""

_DEEPEST: Final = 100  # levels of arguments: what reads them again must not run out of stack
_RAW: Final = 2_000  # characters of what cannot be read that are kept
_ID: Final = re.compile(r"[!-~]{1,256}")
_NAME: Final = re.compile(
    r"[!-~]{1,128}"
)  # what can be replayed; whether it is known is seen later


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A call as it came."""

    id: object
    name: object
    arguments: object
    """JSON as text, or already as an object; what is missing or empty is an object without keys."""


def read_calls(raw: Iterable[RawCall]) -> tuple[ToolCall, ...] | MalformedCall:
    """Return the calls of a round, or the first that cannot be read.

    An id that is missing, or stands twice, is made: the same one for the same round.
    """
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for place, one in enumerate(raw):
        if not isinstance(one.name, str) or not _NAME.fullmatch(one.name):
            return _malformed(one, f"{str(one.name)[:80]!r} is no name of a tool")
        arguments = _arguments(one)
        if isinstance(arguments, MalformedCall):
            return arguments
        id_ = _id(one.id, place, taken)
        taken.add(id_)
        calls.append(ToolCall(id=id_, name=one.name, arguments=arguments))
    return tuple(calls)


def check_tools(request: ModelRequest) -> None:
    """Refuse tools that share a name, and a choice that is none; also where there are no tools.

    Raises:
        ValidationError: as said.
    """
    names = [tool.name for tool in request.tools]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValidationError(
            f"two tools are called {twice!r}", hint="give each tool a name of its own"
        )
    choice = request.tool_choice
    if choice is not None and choice not in CHOICES and choice not in names:
        raise ValidationError(
            f"tool_choice is {choice!r}",
            hint=f"give one of {', '.join(map(repr, [*CHOICES, *names[:20]]))}",
        )


def _id(given: object, place: int, taken: set[str]) -> str:
    if isinstance(given, str) and _ID.fullmatch(given) and given not in taken:
        return given
    made = f"call-{place}"
    while made in taken:  # the server's own may look the same
        made += "-"
    return made


def _arguments(one: RawCall) -> str | MalformedCall:
    """Return the arguments of a call as canonical JSON."""
    value = one.arguments
    if isinstance(value, str) and value.strip():
        found = read_strictly(value)
        if isinstance(found, Unparsed):
            return _malformed(one, f"{found.reason}, at character {found.position}")
        parsed = found.value
    elif value is None or isinstance(value, str):
        parsed = {}
    else:
        parsed = cast("JsonValue", value)
    if _is_deep(parsed):
        return _malformed(one, f"the arguments are nested more than {_DEEPEST} levels deep")
    try:
        return canonical_json(parsed)
    except ValueError as error:
        return _malformed(one, str(error))


def _is_deep(value: JsonValue) -> bool:
    level: Sequence[JsonValue] = [value]
    for _ in range(_DEEPEST + 1):
        level = [below for one in level for below in _below(one)]
        if not level:
            return False
    return True


def _below(value: JsonValue) -> Iterable[JsonValue]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def _malformed(one: RawCall, reason: str) -> MalformedCall:
    name = one.name if isinstance(one.name, str) else ""
    return MalformedCall(name=name[:128], raw=str(one.arguments)[:_RAW], reason=reason)
