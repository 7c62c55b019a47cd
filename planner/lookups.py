"""What a task names that code can look for: what stands in quotation marks, and what looks like an id.

Pure, linear, and the same in all languages: quotation marks and the mixture of letters with digits are
read, no words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Terms", "terms_of"]

_READ: Final = 20_000  # characters; a task says early what it is about
_MOST: Final = 32  # terms of a kind
_LONGEST: Final = 80  # characters of a term; what is longer is a passage

_QUOTED: Final = re.compile(
    r"(?<!\w)\"([^\"\n]{1,200})\"|\u201c([^\u201d\n]{1,200})\u201d"
    r"|\u201e([^\u201c\u201d\n]{1,200})[\u201c\u201d]|\u00ab([^\u00bb\n]{1,200})\u00bb"
    r"|\u300c([^\u300d\n]{1,200})\u300d|\u300e([^\u300f\n]{1,200})\u300f"
    r"|(?<!\w)'([^'\n]{1,200})'(?!\w)|`([^`\n]{1,200})`"
)
_RUN: Final = re.compile(r"[#@]?\w[\w./:@#+-]*\w|#\d+")
# Letters beside digits, or words joined as no language joins them: INV-204, v1.2, #4711, read_file.
_MIXED: Final = re.compile(r"[^\W\d_][-_./:#]?\d|\d[-_./:#]?[^\W\d_]|#\d|\w_\w|\w@\w+\.\w")
# Numbers with their units, ordinals, dates and quarters are mixtures too, and no ids.
_AMOUNT: Final = re.compile(
    r"\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s|k|m|bn|[kmgt]b|ms|h|d|x|[kcm]m|kg|am|pm|e|er|\u00e8me)?"
    r"|q[1-4]|h[12]|\d{4}-\d\d-\d\dt.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a task names, each once, in the order of the task; 32 of a kind at most."""

    quoted: tuple[str, ...]
    """What stands between quotation marks, of any language's kind."""
    ids: tuple[str, ...]
    """What looks like an id, outside of these."""

    @property
    def exact(self) -> tuple[str, ...]:
        """What can only be meant as it is written: quoted terms and ids."""
        return tuple(dict.fromkeys((*self.quoted, *self.ids)))


def terms_of(task: str) -> Terms:
    """Return the terms of a task. Reads its first 20,000 characters.

    Example:
        >>> terms_of('Which mails mention "late fee" or INV-204?').exact
        ('late fee', 'INV-204')
    """
    text = task[:_READ]
    quoted = [
        " ".join(next(filter(None, found.groups())).split()) for found in _QUOTED.finditer(text)
    ]
    runs = [run.rstrip(".:/-") for run in _RUN.findall(_QUOTED.sub(" ", text))]
    return Terms(quoted=_few(quoted), ids=_few([run for run in runs if _is_id(run)]))


def _is_id(run: str) -> bool:
    return _MIXED.search(run) is not None and _AMOUNT.fullmatch(run) is None


def _few(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in found if 0 < len(text) <= _LONGEST))[:_MOST]
