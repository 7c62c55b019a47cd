"""Exact matching: what terms and patterns say of a text, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from corpus.records import Record
from corpus.scripts import UNSPACED
from executors.errors import ValidationError

__all__ = [
    "Exact",
    "HasRecords",
    "Mode",
    "Predicate",
    "Readable",
    "count_exact",
    "exact",
    "regex_predicate",
    "terms_predicate",
]

Predicate = Callable[[str], bool]
"""Whether a text matches."""
Mode = Literal["any", "all"]

_SPACES = re.compile(r"\s+")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class HasRecords(Protocol):
    """A source."""

    def records(self) -> Iterator[Record] | AsyncIterator[Record]:
        """Return the records in order."""
        ...


Readable = Iterable[Record] | AsyncIterable[Record] | HasRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """What an exact match found."""

    count: int
    ids: tuple[str, ...]
    """Ids that match, in the order of the source."""
    looked_at: int
    """Records that were read."""


def terms_predicate(
    terms: Iterable[str], *, mode: Mode = "any", whole_words: bool = True
) -> Predicate:
    """Return whether a text holds any (or all) of the terms, whatever their case and Unicode form.

    Terms are plain text: `C++` and `.*` mean themselves. Runs of white space are one space. With
    `whole_words` no letter, digit or mark may touch a term, except in scripts that write without
    spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese).

    Raises:
        ValidationError: no terms, a blank one, or an unknown mode.

    Example:
        >>> terms_predicate(["straße", "C++"])("Die STRASSE")
        True
    """
    if mode not in get_args(Mode):
        raise ValidationError(f"unknown mode {mode!r}", hint="choose 'any' or 'all'")
    if isinstance(terms, str):
        raise ValidationError(f"the terms {terms!r} are one text", hint="give a list of terms")
    folded = [_spaced(_folded(term)).strip() for term in terms]
    if not folded or not all(folded):
        raise ValidationError(
            "there are no terms" if not folded else "a term is blank",
            hint="give words as in --terms 'refund,chargeback'",
        )
    several = any(" " in term for term in folded)
    stands = _stands_alone if whole_words else _stands
    decide = any if mode == "any" else all

    def holds(text: str) -> bool:
        haystack = _folded(text)
        if several:
            haystack = _spaced(haystack)
        return decide(stands(term, haystack) for term in folded)

    return holds


def regex_predicate(pattern: str) -> Predicate:
    """Return whether a pattern is found in a text; both in NFC, case as the pattern says: `(?i)`.

    Raises:
        ValidationError: the pattern is empty or is none.
    """
    if not pattern:
        raise ValidationError("the pattern is empty", hint="it would match every record")
    try:
        compiled = re.compile(_nfc(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValidationError(
            f"the pattern {pattern!r} cannot be read: {error}",
            hint="escape special characters with a backslash, or give terms",
        ) from error
    return lambda text: compiled.search(_nfc(text)) is not None


async def exact(source: Readable, predicate: Predicate) -> AsyncGenerator[Record]:
    """Yield the records whose text matches, lazily; those with nothing to read never do.

    Who stops early closes it, as every asynchronous generator: `contextlib.aclosing`.
    """
    async with aclosing(_records(source)) as records:
        async for record in records:
            if not record.empty and predicate(record.text):
                yield record


async def count_exact(source: Readable, predicate: Predicate) -> Exact:
    """Read a source to its end and return what matched."""
    ids: list[str] = []
    looked_at = 0
    async for record in _records(source):
        looked_at += 1
        if not record.empty and predicate(record.text):
            ids.append(record.id)
    return Exact(count=len(ids), ids=tuple(ids), looked_at=looked_at)


async def _records(source: Readable) -> AsyncGenerator[Record]:
    opened = source if isinstance(source, AsyncIterable | Iterable) else source.records()
    if isinstance(opened, AsyncIterable):
        async for record in opened:
            yield record
    else:
        for record in opened:
            yield record


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else _nfc(_nfc(text).casefold())


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _spaced(text: str) -> str:
    return _SPACES.sub(" ", text)


def _stands(term: str, text: str) -> bool:
    return term in text


def _stands_alone(term: str, text: str) -> bool:
    """Whether the term stands somewhere without a letter, digit or mark that touches it."""
    place = text.find(term)
    while place >= 0:
        end = place + len(term)
        if not (place and _touches(term[0], text[place - 1])) and not (
            end < len(text) and _touches(term[-1], text[end])
        ):
            return True
        place = text.find(term, place + 1)
    return False


def _touches(edge: str, neighbour: str) -> bool:
    """Whether a neighbour goes on with the word that the edge of a term is part of."""
    if not _in_word(edge) or _UNSPACED.match(edge):
        return False
    return _in_word(neighbour)


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"
