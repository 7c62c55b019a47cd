"""What somebody wants to do, made plain: whatever came, its rules see values of their own.

An action is a mapping with a `type`, and its fields beside it or under `args`. `tool` names the tool
where `type` says only of what kind it is. `_ctx` is the caller's own word on who acts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from executors.gate.audit.secret_keys import SecretKeys
from executors.gate.copies import Bounds, Copier, Opaque, kind_of, text_of
from executors.replies import JsonValue
from executors.secrets import scrub

__all__ = ["Action", "ActionKind", "Opaque", "plain"]

ActionKind = Literal["bash", "read", "write", "edit", "fetch", "llm", "spawn", "defer", "tool"]
"""What an action is to the rules; whatever has no kind of its own is a tool."""

_KINDS: Final = frozenset({"bash", "read", "write", "edit", "fetch", "llm", "spawn", "defer"})
_CONTEXT: Final = "_ctx"
_PAYLOAD: Final = frozenset({"content", "contents"})
"""What is written somewhere, and does nothing by itself."""
_WORDS: Final = ("cmd", "command")
_ARGUMENTS: Final = ("args", "argv", "arguments")

_OF_ACTIONS: Final = Bounds()
_OF_CONTEXTS: Final = Bounds(values=1_000, characters=100_000, depth=8)
_SECRET_KEYS: Final = SecretKeys()
_HIDDEN: Final = "[secret]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action whose values are plain: None, bool, numbers, str, bytes, list, dict and Opaque."""

    type: str
    """ "" where it is missing or no text."""
    tool: str
    """The name that lists of tools know it by."""
    fields: Mapping[str, object] = field(default_factory=dict[str, object])
    """What stands flat, `type` and `tool` too."""
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    """What stands under `args`."""
    context: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    """Who acts; live objects by the names of their classes, and without secrets."""
    broken: str | None = None
    """Why it cannot be judged whole; None where it can."""

    @property
    def kind(self) -> ActionKind:
        """Return which rules it meets. `fetch.get` is a fetch as well."""
        if self.type.startswith("fetch."):
            return "fetch"
        return cast("ActionKind", self.type) if self.type in _KINDS else "tool"

    @property
    def bare(self) -> bool:
        """Return whether it is a name and nothing else: what may be called, not what would be done."""
        return not self.args and self.fields.keys() <= {"type", "tool"} and self.broken is None

    def values(self, *names: str) -> tuple[object, ...]:
        """Return each distinct value under these names: what stands flat first, then under `args`."""
        found: list[object] = []
        for where in (self.fields, self.args):
            for name in names:
                if name in where and not any(_same(where[name], one) for one in found):
                    found.append(where[name])
        return tuple(found)

    def texts(self, *, payload: bool = False) -> Iterator[str]:
        """Go through all its texts as they are read: values, keys, and command lines put together.

        Args:
            payload: those under `args.content` and `args.contents` too.
        """
        yield from _texts(dict(self.fields))
        yield from _texts(self._arguments(payload=payload))

    def serialized(self, *, payload: bool = False) -> str:
        """Return it as compact JSON, with characters as they are, without `_ctx`."""
        whole = dict(self.fields)
        if self.args:
            whole["args"] = self._arguments(payload=payload)
        return json.dumps(
            _written(whole), ensure_ascii=False, separators=(",", ":"), check_circular=False
        )

    @property
    def json(self) -> str:
        """Return `serialized()`: what is written somewhere is left out."""
        return self.serialized()

    @property
    def given(self) -> dict[str, JsonValue]:
        """Return it as it was given, as JSON: nested as it was, with its context."""
        whole = dict(self.fields)
        if self.args:
            whole["args"] = dict(self.args)
        shown = cast("dict[str, JsonValue]", _written(whole))
        return {**shown, _CONTEXT: dict(self.context)} if self.context else shown

    def _arguments(self, *, payload: bool) -> dict[str, object]:
        return {key: one for key, one in self.args.items() if payload or key not in _PAYLOAD}


def plain(given: object) -> Action:
    """Make an action of whatever came; a text is the name of a tool, and no input raises.

    What cannot be read, or written as JSON, or is too much, is named in `broken`; the rest of it is
    there to be judged all the same. Its bounds are 20,000 values, 64,000,000 characters
    and 64 levels of nesting.
    """
    if type(given) is Action:
        return given
    name = text_of(given)
    copier = Copier(_OF_ACTIONS)
    members = copier.members({"type": name} if name is not None else given)
    if members is None:
        why = f"{kind_of(given)} is no action: give a mapping with its type and its fields"
        return Action(type="", tool="", broken=why)
    fields: dict[str, object] = {}
    context: dict[str, JsonValue] = {}
    for key, value in members:
        if key == _CONTEXT:
            context = _context(value)
        else:
            fields[key] = copier.copy(value)
    return _assembled(fields, context, copier.fault)


def _assembled(
    fields: dict[str, object], context: dict[str, JsonValue], fault: str | None
) -> Action:
    args: Mapping[str, object] = {}
    if isinstance(fields.get("args"), dict):
        args = cast("dict[str, object]", fields.pop("args"))
    for name in ("type", "tool"):
        if not isinstance(fields.get(name), str | None) and fault is None:
            fault = f"its {name} is no text"
    kind, tool = _name(fields, "type"), _name(fields, "tool")
    return Action(
        type=kind, tool=tool or kind, fields=fields, args=args, context=context, broken=fault
    )


def _name(fields: dict[str, object], key: str) -> str:
    found = fields.get(key)
    return found if isinstance(found, str) else ""


# ---------------------------------------------------------------- texts


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bytes():
            yield value.decode("utf-8", "replace")
        case list():
            items = cast("list[object]", value)
            if len(items) > 1:
                yield from _joined(items)
            for one in items:
                yield from _texts(one)
        case dict():
            members = cast("dict[str, object]", value)
            yield from _command(members)
            for key, one in members.items():
                yield key
                yield from _texts(one)
        case _:
            return


def _joined(words: list[object]) -> Iterator[str]:
    """Put a list of words together, as whoever runs it does."""
    if all(isinstance(one, str | int | float | bytes) for one in words):
        yield " ".join(_word(one) for one in words)


def _command(members: dict[str, object]) -> Iterator[str]:
    """Put a program together with the arguments that stand beside it."""
    for name in _WORDS:
        for others in _ARGUMENTS:
            head, rest = members.get(name), members.get(others)
            if isinstance(head, str) and isinstance(rest, list):
                yield from _joined([head, *cast("list[object]", rest)])


def _word(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# ---------------------------------------------------------------- JSON


def _written(value: object) -> JsonValue:
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {key: _written(one) for key, one in members.items()}
        case list():
            return [_written(one) for one in cast("list[object]", value)]
        case bytes():
            return value.decode("utf-8", "replace")
        case float() if not math.isfinite(value):
            return str(value)
        case Opaque():
            return str(value)
        case _:
            return cast("JsonValue", value)


def _same(one: object, other: object) -> bool:
    # True equals 1 and 1 equals 1.0, which are not the same to whoever acts on them.
    return type(one) is type(other) and one == other


# ---------------------------------------------------------------- context


def _context(given: object) -> dict[str, JsonValue]:
    """Copy who acts: what is no mapping stands under `value`."""
    copy = Copier(_OF_CONTEXTS).copy(given)
    whole: object = cast("object", copy) if isinstance(copy, dict) else {"value": copy}
    shown = _principal(whole)
    return cast("dict[str, JsonValue]", shown)


def _principal(value: object) -> JsonValue:
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {scrub(key): _beside(key, one) for key, one in members.items()}
        case list():
            return [_principal(one) for one in cast("list[object]", value)]
        case str():
            return scrub(value)
        case bytes():
            return "<bytes>"
        case _:
            return _written(value)


def _beside(key: str, value: object) -> JsonValue:
    if value is not None and key in _SECRET_KEYS:
        return _HIDDEN
    return _principal(value)
