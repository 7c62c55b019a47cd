"""What no action may hold, and what a person is asked about, wherever in it that stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import field_validator

from executors.gate.config.section import Section
from executors.gate.config.texts import Texts, require_texts

__all__ = ["MEANINGS", "ContentSection"]

_RECURSIVE: Final = r"(?:-[a-zA-Z]*[rR][a-zA-Z]*|--recursive)"
_FORCED: Final = r"(?:-[a-zA-Z]*f[a-zA-Z]*|--force)"
_OPTIONS: Final = r"(?:-\S+\s+)*"
_BOTH: Final = (
    r"(?:-[a-zA-Z]*(?:[rR][a-zA-Z]*f|f[a-zA-Z]*[rR])[a-zA-Z]*"
    rf"|{_RECURSIVE}\s+{_OPTIONS}{_FORCED}|{_FORCED}\s+{_OPTIONS}{_RECURSIVE})"
)

# With what is said of them, since nobody reads these.
_DENIED: Final = {
    rf"\brm\s+{_OPTIONS}{_BOTH}\s+(?:[^;|&<>\n]*[ \t])?[\"']?/": "it removes by force what is below /",
    rf"\brm\s+{_OPTIONS}[\"']?/\S*\s+{_OPTIONS}{_BOTH}": "it removes by force what is below /",
    r"\bgit\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?)*push\s(?:[^;|&\n]*\s)?"
    r"(?:--force\b|-[a-zA-Z]*f[a-zA-Z]*\b|\+\S)": "it overwrites what others pushed",
    r"(?i)\bdrop\s+(?:table|database|schema)\b": "it drops a table",
    r"(?i)\btruncate\s+table\b": "it empties a table",
    # Nothing but the end of the statement follows the table.
    r"(?i)\bdelete\s+from\s+[\w.`\"\[\]-]+\s*(?:[;'\")]|--|/\*|\\|$)": "it deletes all rows",
}
_ASKED: Final = {
    r"(?i)\"method\"\s*:\s*\"delete\"": "it sends DELETE",
    r"(?i)\bpurge\b": "it says purge",
    r"(?i)\bdestroy\b": "it says destroy",
}
MEANINGS: Final[Mapping[str, str]] = {**_DENIED, **_ASKED}
"""What the patterns that are there by default find, in words."""


class ContentSection(Section):
    """Patterns that run in linear time (RE2).

    They are held against every text of an action as it is read, against command lines put together,
    and against the action as compact JSON; not against what is to be written (`args.content`,
    `args.contents`).
    """

    deny_patterns: Texts = tuple(_DENIED)
    """What is denied. Left out, it is what destroys beyond repair; [] denies nothing."""
    ask_patterns: Texts = tuple(_ASKED)
    """What a person decides. Left out, it is what is likely to destroy; [] asks about nothing."""

    @field_validator("deny_patterns", "ask_patterns")
    @classmethod
    def _patterns(cls, given: Texts) -> Texts:
        return require_texts(given, "a pattern")
