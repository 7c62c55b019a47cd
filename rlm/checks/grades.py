"""The verdict in a grader's text: JSON where it wrote some, else the label that it announces. Pure.

A text without a verdict is none: never a pass, and never a fail that invents findings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from executors.replies import Parsed, read_json
from executors.wrappings import Piece, after_leading, thoughts
from rlm.checks.verdict import Failed, NeedsRevision, Satisfied, Unusable, Verdict, read_verdict

__all__ = ["read_grade", "read_label"]

_ANNOUNCED: Final = (
    r"(?P<final>\b(?:final|overall)\s+)?"
    r"\b(?:verdict|grade|status|answer|result|decision|conclusion|judge?ment|outcome)\b"
    r"(?:\s+(?:is|was))?\s*[*_`\"':=\s-]{0,8}"
)
# A label that is only named among others, or asked about, announces nothing.
_NAMED_ONLY: Final = r"(?![\w-])(?![*_`\"']{0,3}\s{0,3}(?:\?|\||/|,?\s{0,3}or\b))"
_AROUND: Final = " \t\r\n*_`\"'.:!#>-"
_FIRST: Final = r"[\s*_`\"'#>-]{0,16}"
_ENDED: Final = r"(?=[*_`\"']{0,3}\s{0,3}(?:[:.,;!(\n\u2013\u2014-]|$))"
_SHOWN: Final = 2_000
_LABELS: Final[Mapping[str, Verdict]] = {
    "satisfied": Satisfied(),
    "pass": Satisfied(),
    "passed": Satisfied(),
    "needs_revision": NeedsRevision(),
    "needs-revision": NeedsRevision(),
    "needs revision": NeedsRevision(),
    "not satisfied": NeedsRevision(),
    "unsatisfied": NeedsRevision(),
    "fail": NeedsRevision(),
    "failed": Failed(),
}


def read_grade(text: str) -> Verdict | Unusable:
    """Return the verdict that a grader's reply states, or why it states none."""
    found = read_json(text)
    if not isinstance(found, Parsed):
        if "{" in text:
            return Unusable(what=f"its reply cannot be read: {found.reason}"[:200])
        return _announced(text)
    if isinstance(found.value, str):
        return _announced(found.value)
    if not isinstance(found.value, dict):
        return Unusable(what=f"its reply is a JSON {type(found.value).__name__}, not an object")
    verdict = read_verdict(found.value)
    if isinstance(verdict, Unusable) and _has_a_word_for_it(found.value):
        # It judged, and in a word of its own: what is not plainly satisfied is not satisfied.
        return read_verdict(found.value | {"status": "needs_revision"})
    return verdict


def read_label(text: str, labels: Collection[str]) -> str | None:
    """Return the one label that a text announces, None where it announces none or several.

    A label is announced where it is all there is, where it follows a word such as "verdict" or
    "grade", or where the text begins with it. A final announcement outweighs earlier ones.
    """
    answer = _answer(text)
    spelt = {label.casefold(): label for label in labels}
    whole = spelt.get(answer.strip(_AROUND).casefold())
    if whole is not None:
        return whole
    either = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    announced = re.compile(f"{_ANNOUNCED}(?P<label>{either}){_NAMED_ONLY}", re.IGNORECASE)
    hits = list(announced.finditer(answer))
    for some in ([hit for hit in hits if hit["final"]], hits):
        named = {hit["label"].casefold() for hit in some}
        if named:
            return spelt[named.pop()] if len(named) == 1 else None
    first = re.match(f"{_FIRST}(?P<label>{either}){_ENDED}", answer, re.IGNORECASE)
    return None if first is None else spelt[first["label"].casefold()]


def _announced(text: str) -> Verdict | Unusable:
    label = read_label(text, _LABELS)
    if label is None:
        empty = not _answer(text)
        return Unusable(what="its reply is empty" if empty else "its reply states no verdict")
    verdict = _LABELS[label]
    return verdict if isinstance(verdict, Satisfied) else replace(verdict, critique=text[:_SHOWN])


def _answer(text: str) -> str:
    """Return what follows the reasoning that a text begins with."""
    return after_leading(Piece(0, text), thoughts(text)).text


def _has_a_word_for_it(fields: Mapping[str, object]) -> bool:
    """Whether there is a status, though none of ours, and nothing beside it that contradicts."""
    status = fields.get("status")
    named = [key for key in ("pass", "passed") if fields.get(key) is not None]
    return isinstance(status, str) and bool(status.strip()) and not named
