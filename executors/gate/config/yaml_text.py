"""YAML with the few types that JSON has, and nothing that grows as it is read.

Values are built from the events of the parser, one for each, so that no text stands for more than it
holds: values of other places (`*name`) and tags are refused. `no`, `on`, dates, numbers with base 60,
with `_` or with a leading 0 (eight to some, ten to others) are texts here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from yaml.events import Event, ScalarEvent

__all__ = ["read_yaml"]

_DEEPEST: Final = 32
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,399})")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)")
_SPECIAL: Final = re.compile(r"([-+]?)\.(inf|nan)", re.IGNORECASE)


def read_yaml(text: str) -> object:
    """Return what a text of YAML says, in dicts, lists, texts, numbers, True, False and None.

    Raises:
        ValueError: it is no YAML, or uses what is not read here; it says in which line.
    """
    import yaml  # 35 ms, which only those pay whose configuration is a file of YAML

    # The parser has no types of its own, and keeps its states on a list: no depth ends it.
    events = cast("Callable[[str, Any], list[Event]]", yaml.parse)
    building = _Building()
    try:
        for event in events(text, yaml.SafeLoader):
            building.take(event)
    except yaml.YAMLError as error:
        raise ValueError(_said(error)) from None
    return building.whole


@dataclass(slots=True, kw_only=True)
class _Open:
    """A container that has not ended."""

    value: dict[object, object] | list[object]
    key: list[object] = field(default_factory=list[object])
    """The key whose value comes next, if any."""


class _Building:
    """Puts values together as they come."""

    def __init__(self) -> None:
        self.whole: object = None
        self._open: list[_Open] = []

    def take(self, event: Event) -> None:
        """Take the next event of the parser."""
        match type(event).__name__:
            case "ScalarEvent":
                self._plain(event)
                self._put(_scalar(cast("ScalarEvent", event)), event)
            case "MappingStartEvent":
                self._begin({}, event)
            case "SequenceStartEvent":
                self._begin([], event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._put(self._open.pop().value, event)
            case "AliasEvent":
                raise _unread("another place's value (*)", event)
            case "DocumentStartEvent" if self.whole is not None:
                raise _unread("a second document", event)
            case _:
                return

    def _begin(self, value: dict[object, object] | list[object], event: Event) -> None:
        self._plain(event)
        if len(self._open) >= _DEEPEST:
            raise _unread(f"more than {_DEEPEST} levels", event)
        self._open.append(_Open(value=value))

    def _put(self, value: object, event: Event) -> None:
        if not self._open:
            self.whole = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key:
            top.value[top.key.pop()] = value
        elif isinstance(value, dict | list):
            raise _unread("a key that is no text", event)
        elif value in top.value:
            raise _unread(f"the key {value!r}, which stands there already,", event)
        else:
            top.key.append(value)

    def _plain(self, event: Event) -> None:
        if getattr(event, "tag", None) is not None:
            raise _unread("tags (!)", event)


def _said(error: Exception) -> str:
    """Return what is wrong, and where; not the text there, which may be a key."""
    mark: Any = getattr(error, "problem_mark", None)
    what = " ".join(str(getattr(error, "problem", None) or "it is no YAML").split())
    return what if mark is None else f"{what} (line {mark.line + 1}, column {mark.column + 1})"


def _unread(what: str, event: Event) -> ValueError:
    mark: Any = getattr(event, "start_mark", None)
    return ValueError(f"{what} in line {0 if mark is None else mark.line + 1} cannot be read")


def _scalar(event: ScalarEvent) -> object:
    told: Any = event
    text: str = told.value
    if not told.implicit[0]:  # in quotes, or a block
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number  # one that is too large is not infinite: that has to be said
    special = _SPECIAL.fullmatch(text)
    return text if special is None else float("".join(special.groups()))
