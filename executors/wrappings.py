"""What models wrap their answers in: reasoning, fences, another language's quoting.

Pure, and linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = [
    "Fence",
    "Piece",
    "Span",
    "after_leading",
    "covering",
    "fences",
    "merged",
    "requoted",
    "thoughts",
    "unfenced",
]

Span = tuple[int, int]

_THOUGHT: Final = (
    r"(?:\w{1,12}:)?(?:think|thinking|thoughts?|reasoning|reasoning_content|reflection|scratchpad"
    r"|analysis|inner_monologue|chain_of_thought|cot|rationale|deliberation)"
)
# Also the channels of a reply whose special tokens a server let through, whole or stripped.
_TAG: Final = re.compile(
    rf"(?P<closing>(?i:</{_THOUGHT}>)|\[/THINK\]|◁/think▷|<\|(?i:/think(?:ing)?|end_of_thought"
    r"|end_thinking)\|>|<\|channel\|>\s*final\b(?:<\|message\|>)?|assistantfinal)"
    rf"|(?i:<{_THOUGHT}(?:\s[^<>]*)?>)|\[THINK\]|◁think▷|<\|(?i:think(?:ing)?|begin_of_thought"
    r"|start_thinking)\|>|<\|channel\|>\s*(?:analysis|commentary)\b"
)
_FENCE_LINE: Final = re.compile(r"^[ \t]*(`{3,}+|~{3,}+)[ \t]*([\w+#.-]*)([^\n]*)$", re.MULTILINE)
_OPENING: Final = re.compile(r"(`{3,}+|~{3,}+)[ \t]*([\w+#.-]*)")
_JSON_LIKE: Final = frozenset(
    {"", "json", "jsonc", "json5", "jsonl", "ndjson", "js", "javascript", "python", "py", "text"}
)
_BLANK: Final = " \t\r\n\v\f\u00a0\u200b\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the raw text, and where it begins there."""

    start: int
    text: str

    def cut(self, start: int, end: int | None = None) -> Piece:
        """Return a stretch of this stretch without the blanks around it."""
        text = self.text[start:end]
        bare = text.lstrip(_BLANK)
        return Piece(self.start + start + len(text) - len(bare), bare.rstrip(_BLANK))


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block among other text; positions are those of the text."""

    language: str
    start: int
    body: Span
    end: int

    @property
    def json_like(self) -> bool:
        """Whether its language lets it hold JSON."""
        return self.language.lower() in _JSON_LIKE


# ---------------------------------------------------------------- reasoning


def thoughts(text: str) -> list[Span]:
    """Return the spans of reasoning: closed, never closed, or closed without an opening."""
    spans: list[Span] = []
    opened: int | None = None
    for tag in _TAG.finditer(text):
        if tag["closing"] is None:
            opened = tag.start() if opened is None else opened
        elif opened is None:
            spans = [(0, tag.end())]  # the opening stood in the prompt
        else:
            spans.append((opened, tag.end()))
            opened = None
    if opened is not None:
        spans.append((opened, len(text)))
    return spans


def after_leading(piece: Piece, spans: list[Span]) -> Piece:
    """Return what follows the reasoning that a piece begins with."""
    at = 0
    for start, end in spans:
        if not piece.text[at:start].strip(_BLANK):
            at = end
    return piece.cut(at)


def merged(spans: list[Span]) -> list[Span]:
    """Return the same ground as spans in order that do not overlap."""
    apart: list[Span] = []
    for start, end in sorted(spans):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def covering(position: int, spans: list[Span]) -> int | None:
    """Return the end of the span that covers a position; the spans are in order."""
    at = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return spans[at][1] if at >= 0 and position < spans[at][1] else None


# ---------------------------------------------------------------- fences


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks; one that is never closed is none."""
    opening: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(text):
        if opening is None:
            opening = line
        elif line[1].startswith(opening[1]) and not (line[2] or line[3].strip()):
            body = (min(opening.end() + 1, line.start()), line.start())
            yield Fence(opening[2], opening.start(), body, line.end())
            opening = None


def unfenced(piece: Piece) -> Iterator[Piece]:
    """Yield the body of a fence around the whole piece, then the same after its own reasoning."""
    opening = _OPENING.match(piece.text)
    if opening is None or opening[2].lower() not in _JSON_LIKE:
        return
    end = len(piece.text) - len(opening[1])
    if end < opening.end() or not piece.text.endswith(opening[1]):
        return
    body = piece.cut(opening.end(), end)
    yield body
    answer = after_leading(body, thoughts(body.text))
    if answer != body:
        yield answer


# ---------------------------------------------------------------- Python's quoting

# The end of the text ends a string too, so that no text is read twice.
_QUOTED: Final = re.compile(
    r"""'(?P<single>(?:[^'\\]|\\.|\\\Z)*+)(?P<closed>'|\Z)|"(?:[^"\\]|\\.|\\\Z)*+(?:"|\Z)"""
    r"""|\b(?P<word>True|False|None)\b""",
    re.DOTALL,
)
_INNER: Final = re.compile(r"\\.|\"", re.DOTALL)
_INNER_AS_JSON: Final = {"\\'": "'", '"': '\\"'}
_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


def requoted(text: str) -> str:
    """Rewrite the strings and words of a Python literal as JSON; all else stays as it is."""
    return _QUOTED.sub(_as_json, text)


def _as_json(token: re.Match[str]) -> str:
    if token["word"]:
        return _WORDS[token["word"]]
    if not token["closed"]:
        return token[0]
    inner = _INNER.sub(lambda found: _INNER_AS_JSON.get(found[0], found[0]), token["single"])
    return f'"{inner}"'
