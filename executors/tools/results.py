"""What a tool gave, as the bounded and harmless text that a model reads."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from typing import Final, cast

from executors.secrets import mask

__all__ = ["as_text", "clipped", "shown"]

# Controls but tab and line feed, lone surrogates, and what reorders or hides text from people.
_HARMFUL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def as_text(value: object) -> str:
    """Return a text as it is, anything else as JSON.

    Raises:
        ValueError: it has no form in JSON: a NaN, a cycle, an object that nobody can write down.
        TypeError, RecursionError: the same.
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def shown(text: str, characters: int) -> str:
    """Return what a model is shown of a result: bounded, without our secrets and controls."""
    cut = clipped(mask(text), characters).replace("\r\n", "\n")
    return clipped(_HARMFUL.sub(_escaped, cut), characters)


def clipped(text: str, characters: int) -> str:
    """Return a text of at most so many characters: its head and its tail, and what is left out."""
    if len(text) <= characters:
        return text
    note = f"\n[… {len(text):,} characters, the middle is left out …]\n"
    room = max(0, characters - len(note))
    head = (room + 1) // 2
    return text[:head] + note + text[len(text) - (room - head) :]


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    from pydantic import TypeAdapter  # heavy, and few results need it

    return cast("object", TypeAdapter(object).dump_python(value, mode="json"))
