"""Facts that others note about a run: logged, and shown to a person with the next question."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from executors.replies import JsonValue

__all__ = ["Annotation", "Annotations", "Malformed", "plain_annotation"]

_META: Final = 1_000
"""Bytes of JSON that a fact may carry beside its words."""
_WORDS: Final = 500
"""Characters of each of its words."""
_KEPT: Final = 20
"""Facts that wait for a question; older ones are in the log alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A fact. It never decides: what a gate allows and denies is as if it were not there."""

    verdict: str = ""
    reason: str = ""
    where: str = ""
    surface: bool = False
    """A person should see it."""
    meta: JsonValue = None
    """What else belongs to it; `{"_truncated": true, "bytes": n}` where that was over 1,000 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """What was noted is no fact."""

    why: str


def plain_annotation(fact: JsonValue) -> Annotation | Malformed:
    """Return a fact that was redacted already, or why it is none."""
    if not isinstance(fact, Mapping):
        return Malformed(why=f"a fact is a mapping, not {type(fact).__name__}")
    if not isinstance(fact.get("surface", False), bool):
        return Malformed(why="surface is true or false")
    words = {name: fact.get(name, "") for name in ("verdict", "reason", "where")}
    for name, word in words.items():
        if not isinstance(word, str):
            return Malformed(why=f"{name} is a text, not {type(word).__name__}")
    return Annotation(
        **{name: cast("str", word)[:_WORDS] for name, word in words.items()},
        surface=fact.get("surface", False) is True,
        meta=_bounded(fact.get("meta")),
    )


def _bounded(meta: JsonValue) -> JsonValue:
    size = len(json.dumps(meta, ensure_ascii=False).encode("utf-8", "replace"))
    return meta if size <= _META else {"_truncated": True, "bytes": size}


class Annotations:
    """Facts that wait for the next question to a person."""

    def __init__(
        self, reversible: tuple[str, ...], escalation: Literal["strict", "relaxed"]
    ) -> None:
        self._silent = frozenset(reversible) if escalation == "relaxed" else frozenset[str]()
        self._waiting: deque[Annotation] = deque(maxlen=_KEPT)

    def add(self, annotation: Annotation) -> None:
        """Keep a fact that a person should see."""
        if annotation.surface:
            self._waiting.append(annotation)

    def riding(self, type_: str) -> tuple[Annotation, ...]:
        """Take out what is to be shown with a question about an action of that type.

        What can be taken back is not worth a person's attention where the escalation is relaxed:
        what waits goes on waiting.
        """
        if type_ in self._silent or not self._waiting:
            return ()
        riding = tuple(self._waiting)
        self._waiting.clear()
        return riding
