"""Marks that give a text its structure, in any language: items, sentences, clauses, figures. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ARROW",
    "CLAUSE",
    "FIGURE",
    "FILE",
    "INLINE_ITEM",
    "LIST_ITEM",
    "SENTENCE",
    "length_in_words",
]

# Bullets, numbers and letters with their marks, circled and Chinese numbers. Where a mark could be part
# of a word, a rule or a number, a blank has to follow.
LIST_ITEM: Final = re.compile(
    r"^[ \t]{0,12}(?:(?:[-*+\u2013]|\(?\d{1,3}[.)]|\(?[a-z]\))[ \t]{1,4}"
    r"|(?:[\u2022\u00b7\u2023\u25e6\u2460-\u2473]|\d{1,3}[\u3001\uff0e]"
    r"|[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]{1,3}\u3001)[ \t]{0,4})(?=\S)",
    re.MULTILINE,
)
INLINE_ITEM: Final = re.compile(
    r"(?:^|(?<=\s))\(?(?:\d{1,2}|[a-h])\)(?=\s)|[\u2460-\u2473]"
    r"|\uff08[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\d]{1,2}\uff09"
)
SENTENCE: Final = re.compile(r"(?<!\d)[.!?](?=\s|$)|[\u3002\uff01\uff1f\u061f\u0964]")
CLAUSE: Final = re.compile(r"[,;](?=\s)|[\uff0c\uff1b\u3001\u060c\u061b]")
# Orders one after another.
ARROW: Final = re.compile(r"->|=>|[\u2192\u21d2\uff1b]|;(?=\s)")
FIGURE: Final = re.compile(r"(?<!\w)\d[\d.,]{0,12}(?:\s?(?:%|[^\W\d_]{1,4}\b)|[^\W\d_])?", re.ASCII)
FILE: Final = re.compile(
    r"(?<![\w-])[\w-]{1,64}\.(?:py|js|ts|md|csv|json|txt|sql|xml|html|pdf|ya?ml)\b"
)

_WORD: Final = re.compile(r"[^\W_]+")
# Scripts without blanks: Thai, Lao, Khmer, Burmese, Kana, Han.
_JOINED: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def length_in_words(text: str) -> int:
    """Return the length in words; in scripts without blanks two characters say as much as one."""
    joined = sum(1 for _ in _JOINED.finditer(text))
    spaced = sum(1 for _ in _WORD.finditer(_JOINED.sub(" ", text) if joined else text))
    return spaced + joined // 2
