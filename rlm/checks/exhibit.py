"""A result as a grader sees it: bounded, as data, and of a count what code can vouch for."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, cast

from corpus.codes import FIRST_LABEL, MATCHED
from corpus.results import Ranking, Tally
from executors.fences import clipped
from rlm.checks.prompts import as_data

__all__ = ["CHARACTERS", "exhibit"]

CHARACTERS: Final = 24_000
"""Of a result that a grader sees, head and tail."""
_SAMPLED: Final = 20
_RECORD: Final = 400
_NAME: Final = 120
_ITEMS: Final = 1_000
_DEEPEST: Final = 30
_SAFELY: Final = reprlib.Repr()


def exhibit(result: object, *, most: int = CHARACTERS) -> str:
    """Return a result as JSON of about `most` characters, safe to stand in a prompt.

    A text shows its head and tail. A count shows its number, its states, its coverage and at most
    20 of its records, evenly spread over those that matched and those that did not: never all of
    its ids, which code has counted.
    """
    match result:
        case str():
            return as_data(clipped(result, most))
        case Tally():
            return as_data(_count(result))
        case Ranking():
            return as_data(_ranking(result))
        case _:
            return _other(result, most)


def _count(result: Tally) -> dict[str, object]:
    low, high = result.coverage
    shown: dict[str, object] = {
        "kind": "a count made by code over the verdicts of a judge",
        "count": result.count,
        "records": result.records,
        "states": dict(result.states),
        "coverage": {"from": low, "to": high},
        "complete": result.complete,
        "judge": result.judge,
        "sampled_records": [_record(result, ordinal) for ordinal in _sample(result)],
    }
    if result.labels:
        labels = list(result.labels.items())[:_ITEMS]
        shown["labels"] = {clipped(label, _NAME): n for label, n in labels}
    return shown


def _sample(result: Tally) -> Iterator[int]:
    """Yield ordinals, half of them of records that matched where there are as many."""
    matched = (result.codes == MATCHED) | (result.codes >= FIRST_LABEL)
    yes, no = matched.nonzero()[0], (~matched).nonzero()[0]
    half = _SAMPLED // 2
    from_no = min(len(no), max(half, _SAMPLED - len(yes)))
    for ordinals, wanted in ((yes, _SAMPLED - from_no), (no, from_no)):
        some = min(len(ordinals), wanted)
        yield from (int(ordinals[place * len(ordinals) // some]) for place in range(some))


def _record(result: Tally, ordinal: int) -> dict[str, object]:
    row = result.row(ordinal)
    text = result.spool.record(ordinal).text
    shown: dict[str, object] = {"id": clipped(row.id, _NAME), "state": row.state}
    if row.label is not None:
        shown["label"] = clipped(row.label, _NAME)
    if row.quote is not None:
        shown["quote"] = clipped(row.quote.text, _RECORD)
    return shown | {"text": clipped(text, _RECORD)}


def _ranking(result: Ranking) -> dict[str, object]:
    best = islice(result.rows(), _SAMPLED)
    return {
        "kind": "an order of records by uncalibrated scores; it states no number",
        "records": result.records,
        "judge": result.judge,
        "best": [
            {"rank": row.rank, "id": clipped(row.id, _NAME), "score": row.score} for row in best
        ],
    }


def _other(result: object, most: int) -> str:
    try:
        shown = as_data(_as_json(result, 0))
    except ValueError:  # a number that JSON has no word for
        return as_data(clipped(_words(result, repr), most))
    return shown if len(shown) <= most else as_data(clipped(shown, most))


def _as_json(value: object, depth: int) -> object:
    """Return a value in JSON's types, with long and deep ones cut short and said so."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return clipped(value, CHARACTERS)
        case _ if depth >= _DEEPEST:
            return "…"
        case Mapping():
            items = list(islice(cast("Mapping[object, object]", value).items(), _ITEMS))
            some = {
                clipped(_words(key, str), _NAME): _as_json(held, depth + 1) for key, held in items
            }
            return some | _left(len(cast("Mapping[object, object]", value)))
        case bytes() | bytearray():
            return clipped(repr(value), _RECORD)
        case Sequence() | AbstractSet():
            whole = cast("Sequence[object] | AbstractSet[object]", value)
            many = [_as_json(held, depth + 1) for held in islice(whole, _ITEMS)]
            return many + [f"… {n:,} more" for n in _left(len(whole)).values()]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return _as_json(fields, depth)
        case _:
            return clipped(_words(value, str), _RECORD)


def _words(value: object, words: Callable[[object], str]) -> str:
    """Return a value in its own words; one that raises in finding them is named by its type."""
    asked = _Asked(value, words)
    _SAFELY.repr(asked)  # the library's own guard against what a foreign value raises
    return f"<{type(value).__name__}, which cannot be shown>" if asked.said is None else asked.said


class _Asked:
    """A value whose words are wanted."""

    def __init__(self, value: object, words: Callable[[object], str]) -> None:
        self._value = value
        self._words = words
        self.said: str | None = None

    def __repr__(self) -> str:
        self.said = self._words(self._value)
        return ""


def _left(length: int) -> dict[str, int]:
    return {"… more": length - _ITEMS} if length > _ITEMS else {}
