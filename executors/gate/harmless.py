"""Text from outside as a person may be shown it: one bounded line in which nothing moves a cursor."""

from __future__ import annotations

import json
from typing import Final

from executors.replies import JsonValue

__all__ = ["harmless", "harmless_json"]

_LONGEST: Final = 2_000
"""Characters of one text, before what is not printable is escaped."""


def harmless(text: str, longest: int = _LONGEST) -> str:
    """Return a text with controls, line breaks and what reorders or hides text escaped."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
    if cut.isprintable():
        return cut
    return "".join(map(_visible, cut))


def harmless_json(value: JsonValue, longest: int = _LONGEST) -> str:
    """Return a plain value as one line of JSON, harmless too."""
    return harmless(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")), longest)


def _visible(character: str) -> str:
    if character.isprintable():  # neither controls nor format characters nor half a pair are
        return character
    return character.encode("unicode_escape").decode("ascii")
