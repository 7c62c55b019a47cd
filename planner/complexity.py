"""How large a task looks, from its text alone: no model, no network, linear time. Pure.

What it can tell: the verbs, scope and order words of English tasks; words of danger in two dozen
languages; and, in any language and script, how long and how structured a task is: its list items,
sentences, clauses, orders in a row, figures and named files. What it cannot tell: how hard a short
task is whose words it does not know ("Entwirf das System" is caught by its verb, a riddle in one
line by nothing), whether a word of danger is meant or only mentioned, and what a text pasted into
a task is about. A task in words that it does not know is never called simple for that alone
unless it is short or a question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from planner import marks
from planner import vocabulary as words
from planner.marks import length_in_words

__all__ = ["Complexity", "Level", "assess", "is_critical"]

Level = Literal["simple", "medium", "complex", "critical"]

_READ: Final = 4_000
"""Characters that words are looked for in: a task says early what it is. Structure counts in all."""
_SIMPLE, _MEDIUM = 11, 28
_CRITICAL: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Complexity:
    """What a task looks like: a hint to whoever plans, never a verdict."""

    level: Level
    score: int
    """Up to 11 is simple, up to 28 medium; 100 stands for critical alone."""
    needs_planning: bool
    signals: tuple[str, ...]
    """What was seen, by name, in a fixed order."""


def assess(text: object) -> Complexity:
    """Return what a task looks like; what is no text, or blank, is simple. Never raises.

    Words are looked for in the first 4,000 characters, structure in all of them, in linear time. Verbs
    and scope are known in English, and large verbs in some other languages; words of danger in two
    dozen languages make a task critical whatever else it says.

    Example:
        >>> assess("design the system").level
        'complex'
        >>> assess("Untersuche das Datenleck").signals
        ('critical_override',)
    """
    if not isinstance(text, str) or not text.strip():
        return Complexity(level="simple", score=0, needs_planning=False, signals=("empty",))
    whole = text.strip()
    head = _head(text)
    if is_critical(head):
        return Complexity(
            level="critical", score=_CRITICAL, needs_planning=True, signals=("critical_override",)
        )
    seen = _Seen()
    _weigh_words(seen, head)
    _weigh_structure(seen, whole)
    score = min(max(0, seen.score), _CRITICAL - 1)
    if _is_trivial(head, seen):
        score, seen.signals["trivial_edit"] = min(score, _SIMPLE), 0
    level: Level = "simple" if score <= _SIMPLE else "medium" if score <= _MEDIUM else "complex"
    return Complexity(
        level=level, score=score, needs_planning=level != "simple", signals=tuple(seen.signals)
    )


def is_critical(text: object) -> bool:
    """Whether a result for this task has to be checked: security, incidents, law, money.

    Words of danger in a dozen languages, and in English what is done to production, access or
    money. The first 4,000 characters count. A task that only mentions such a word is critical too.
    """
    if not isinstance(text, str):
        return False
    head = _head(text)
    return bool(
        words.DANGERS.search(head)
        or (words.CRITICAL_CONTEXT.search(head) and words.CRITICAL_ACTIONS.search(head))
        or (words.MONEY.search(head) and words.MONEY_ACTIONS.search(head))
    )


def _head(text: str) -> str:
    """Return the beginning of a task in the form that words are looked for in."""
    head = text.strip()[:_READ]
    return (head if head.isascii() else unicodedata.normalize("NFKC", head)).lower()


class _Seen:
    """The sum so far, and what it is made of."""

    def __init__(self) -> None:
        self.score = 0
        self.signals: dict[str, int] = {}

    def add(self, signal: str, points: int) -> None:
        """Note a signal that was seen; one worth nothing was not."""
        if points:
            self.signals[signal] = points
            self.score += points


def _count(pattern: re.Pattern[str], text: str) -> int:
    """Return how many different words of a pattern a text holds."""
    return len(set(pattern.findall(text)))


# ---------------------------------------------------------------- words

_WORDS: Final[tuple[tuple[str, re.Pattern[str], Callable[[int], int]], ...]] = (
    ("complex_verbs", words.COMPLEX, lambda n: 25 * n),
    ("analysis_verbs", words.ANALYSIS, lambda n: min(15 * n, 20)),
    ("medium_verbs", words.MEDIUM, lambda n: 12 * n),
    ("simple_verbs", words.SIMPLE, lambda n: -min(3 * n, 10)),
    ("scope", words.SCOPE, lambda n: 12 * n),
    ("domains", words.DOMAINS, lambda n: 8 * n if n > 1 else 5 * n),
    ("sequence", words.SEQUENCE, lambda n: 8 * n),
    ("constraints", words.CONSTRAINTS, lambda n: 12 * n),
    ("feature_pattern", words.FEATURE_PATTERN, lambda n: 12 * min(n, 1)),
    ("integration", words.INTEGRATION, lambda n: 15 * min(n, 1)),
    ("design_question", words.DESIGN_QUESTION, lambda n: 15 * min(n, 1)),
)


def _weigh_words(seen: _Seen, head: str) -> None:
    for signal, pattern, points in _WORDS:
        seen.add(signal, points(_count(pattern, head)))
    if "complex_verbs" in seen.signals or "medium_verbs" in seen.signals:
        seen.add("features", 10 * _count(words.FEATURES, head))
    if words.SPEED.search(head) and not words.ONE_THING.search(head):
        seen.add("performance", 15)
    if words.LOOKUP.match(head):
        seen.add("lookup", -8)
    if not words.ENGLISH.search(head):
        seen.add("large_verbs", 25 * min(2, _count(words.LARGE_ELSEWHERE, head)))


def _is_trivial(head: str, seen: _Seen) -> bool:
    """Whether one small thing is to be changed, and nothing says that it is more than that."""
    return (
        "medium_verbs" in seen.signals
        and words.TRIVIAL.search(head) is not None
        and "complex_verbs" not in seen.signals
        and "scope" not in seen.signals
        and length_in_words(head) <= 10
    )


# ---------------------------------------------------------------- structure, in any language

_ASKS: Final = ("?", "\uff1f", "\u061f")


def _weigh_structure(seen: _Seen, whole: str) -> None:
    length = length_in_words(whole)
    items = max(_matches(marks.LIST_ITEM, whole), _matches(marks.INLINE_ITEM, whole))
    seen.add("list_items", 9 * items if items > 1 else 0)
    seen.add("length", _step(length, (10, 5), (20, 10), (40, 15), (150, 20), (400, 30)))
    seen.add("sentences", _step(_matches(marks.SENTENCE, whole), (3, 6), (6, 12), (15, 18)))
    seen.add("clauses", _step(_matches(marks.CLAUSE, whole), (3, 4), (6, 8)))
    seen.add("orders", _step(_matches(marks.ARROW, whole), (1, 4), (2, 12)))
    seen.add("figures", _step(_matches(marks.FIGURE, whole), (1, 4), (4, 8)))
    seen.add("files", _step(_matches(marks.FILE, whole), (1, 6), (3, 12)))
    unknown = not words.ENGLISH.search(whole[:_READ].lower()) and seen.score <= _SIMPLE
    if unknown and length > 6 and not whole.endswith(_ASKS) and not _has_english_verb(seen):
        seen.add("unknown_words", _SIMPLE + 1 - seen.score)


def _has_english_verb(seen: _Seen) -> bool:
    return any(signal.endswith("_verbs") for signal in seen.signals)


def _matches(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _step(value: int, *steps: tuple[int, int]) -> int:
    """Return the points of the last step that a value is above."""
    return next((points for above, points in reversed(steps) if value > above), 0)
