"""How texts and queries become words; the same way for both, or they would not meet. Pure.

A text is folded (case, compatibility forms) and the characters of scripts without spaces are parted,
so that the tokenizer makes a word of each and a phrase finds them wherever they stand together. The
tokenizer does the rest: it parts at whatever is no letter, digit or mark, and drops accents.

A query is split at white space. Every piece is quoted, with quotes doubled, so that nothing in it is
an operator: `multi-agent` is the phrase of both words, `NOT`, `title:x` and `*` are plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from corpus.scripts import UNSPACED
from corpus.sources.base import sound
from executors.errors import ValidationError

__all__ = ["MAX_TERMS", "Query", "bare", "folded", "prepared", "read_query"]

MAX_TERMS: Final = 64
"""Terms of a query that are looked for; those behind them are not."""

_UNSPACED_CHAR: Final = re.compile(f"[{UNSPACED}]")
_UNSPACED_RUN: Final = re.compile(f"[{UNSPACED}]+")
_RUNS: Final = re.compile(rf"[{UNSPACED}]+|[^\s{UNSPACED}]+")
_WORDS: Final = re.compile(r"[^\W_]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for."""

    terms: tuple[str, ...]
    """As they were typed, without repeats."""
    pieces: tuple[str, ...]
    """The terms, and the words of those that have several."""

    def every(self, common: Container[str] = ()) -> str:
        """Return the expression that records with all terms match.

        Args:
            common: words that are left out, unless there are no others.
        """
        return " AND ".join(map(_quoted, _telling(self.terms, common)))

    def some(self, common: Container[str] = ()) -> str:
        """Return the expression that records with any piece match, common ones left out as above."""
        return " OR ".join(map(_quoted, _telling(self.pieces, common)))


def folded(text: str) -> str:
    """Return a text without differences of case (`Straße`, `STRASSE`) and of compatibility forms."""
    if text.isascii():
        return text.lower()
    once = unicodedata.normalize("NFKC", text).casefold()
    return once if unicodedata.is_normalized("NFKC", once) else unicodedata.normalize("NFKC", once)


def bare(word: str) -> str:
    """Return a folded word without accents, as the tokenizer has it."""
    if word.isascii():
        return word.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFD", folded(word)))


def prepared(text: str) -> str:
    """Return a text as the tokenizer is given it."""
    plain = folded(text)
    return plain if plain.isascii() else _UNSPACED_RUN.sub(_parted, plain)


def _parted(run: re.Match[str]) -> str:
    return f" {' '.join(run.group())} "


def read_query(query: str) -> Query:
    """Read a query.

    Raises:
        ValidationError: it is no text, or holds no letter and no digit.
    """
    given: object = query
    if not isinstance(given, str):
        raise ValidationError(f"the query is a {type(given).__name__}", hint="give words")
    runs = _RUNS.findall(_CONTROLS.sub(" ", sound(given)))
    terms = tuple(dict.fromkeys(run for run in runs if _has_word(run)))[:MAX_TERMS]
    if not terms:
        raise ValidationError(
            f"the query {query[:80]!r} holds no letter and no digit",
            hint="give words that the records you look for may hold",
        )
    pieces = tuple(dict.fromkeys(piece for term in terms for piece in _pieces(term)))
    return Query(terms=terms, pieces=pieces[: 4 * MAX_TERMS])


def _has_word(run: str) -> bool:
    return any(unicodedata.category(char)[0] in "LN" for char in run)


def _pieces(term: str) -> list[str]:
    """Return a term with its words; of a run without spaces each two neighbours: words hide there."""
    if not _UNSPACED_CHAR.match(term):
        return [term, *_WORDS.findall(term)]
    if len(term) <= 2:
        return [term]
    pairs = (term[at : at + 2] for at in range(len(term) - 1))
    return [pair for pair in pairs if _has_word(pair)]


def _telling(terms: tuple[str, ...], common: Container[str]) -> tuple[str, ...]:
    return tuple(term for term in terms if not _is_common(term, common)) or terms


def _is_common(term: str, common: Container[str]) -> bool:
    """Whether a term is a common word; a phrase of such words may well be rare."""
    words = _WORDS.findall(term)
    return len(words) == 1 and bare(words[0]) in common


def _quoted(term: str) -> str:
    return '"' + prepared(term).replace('"', '""') + '"'
