"""JSON out of a model's text: a value, or a typed account of why there is none. Pure.

The order of attempts; the first that yields a value wins:

1. the text as it stands, strictly, so that valid JSON is never touched
2. the body of a fence around the whole text
3. the same two after a leading block of reasoning, closed, or closed without having been opened
4. the JSON fences among others
5. all of these with raw line breaks allowed inside strings
6. objects one after another and nothing else (JSON lines), as a list
7. the objects that stand in running prose, outside reasoning and fences of other languages
8. the quoting of a Python literal: single quotes, True, False, None

Values that contradict each other are refused: the first one may be a draft or an echoed example.
There is no repair beyond that. The library tried for it reads `1_000.5` as 1000.5, `50%` as 50 and
`12 000` as 12, and closes what was cut; asking again costs less than a wrong number.

NaN, Infinity, floats that overflow, integers of thousands of digits, keys that stand twice and
nesting too deep to read are failures. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Final, NoReturn, TypeAlias

from executors.wrappings import (
    Fence,
    Piece,
    Span,
    after_leading,
    covering,
    fences,
    merged,
    requoted,
    thoughts,
    unfenced,
)

__all__ = ["JsonValue", "Parsed", "Unparsed", "canonical_json", "read_json", "read_strictly"]

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

_MAX_SEARCHED: Final = 200_000  # characters; a longer text has to be JSON as it stands
_TOO_DEEP: Final = "it is nested too deeply"

_BRACKET: Final = re.compile(r"[][{}]")
_BEGINNING: Final = re.compile(r"\{\s*[\"']|\[\s*\{")
_BETWEEN: Final = " \t\r\n,"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What the text says."""

    value: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsed:
    """No value, or several that contradict each other."""

    raw: str
    position: int
    """Character of the raw text where reading failed."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Failure:
    position: int
    reason: str


def read_json(raw: str) -> Parsed | Unparsed:
    """Return the JSON value that a model's text holds, or why there is none."""
    found = _decode(_STRICT, Piece(0, raw))
    if isinstance(found, _Failure):
        try:
            found = _search(Piece(0, raw).cut(0), found)
        except RecursionError:
            found = _Failure(0, _TOO_DEEP)
    if isinstance(found, Parsed):
        return found
    return Unparsed(raw=raw, position=found.position, reason=found.reason)


def read_strictly(raw: str) -> Parsed | Unparsed:
    """Return the JSON value that a text is as it stands; nothing is searched for or requoted."""
    found = _decode(_STRICT, Piece(0, raw))
    if isinstance(found, Parsed):
        return found
    return Unparsed(raw=raw, position=found.position, reason=found.reason)


def canonical_json(value: JsonValue) -> str:
    """Return a value as the one JSON that we write of it: sorted keys, no blanks, plain characters.

    Raises:
        ValueError: a number that is not finite.
        RecursionError: it is nested too deeply.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a character can stand as its escape alone
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text


def _search(whole: Piece, failure: _Failure) -> Parsed | _Failure:
    if not whole.text:
        return _Failure(0, "the text is empty")
    if len(whole.text) > _MAX_SEARCHED:
        return failure
    spans = thoughts(whole.text)
    answer = after_leading(whole, spans)
    if not answer.text:
        return _Failure(0, "the text is reasoning only")
    alone = [whole, *unfenced(whole), answer, *unfenced(answer)]
    blocks = [block for block in fences(whole.text) if covering(block.start, spans) is None]
    for decoder in (_STRICT, _LENIENT):
        for piece in alone:
            if isinstance(found := _decode(decoder, piece), Parsed):
                return found
        if values := list(_from_fences(decoder, whole, blocks)):
            return _agreed(values, whole.start)
    last = alone[-1]
    if lines := _lines(last.text):
        return Parsed(value=lines)
    foreign = [(block.start, block.end) for block in blocks if not block.json_like]
    if values := _objects(whole.text, merged(spans + foreign)):
        return _agreed(values, whole.start)
    if isinstance(found := _decode(_STRICT, Piece(last.start, requoted(last.text))), Parsed):
        return found
    failed = _decode(_LENIENT, last)
    assert isinstance(failed, _Failure)
    return failed


# ---------------------------------------------------------------- decoding


class _Refused(ValueError):
    """JSON that Python reads and we do not."""


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Refused(f"the key {twice[:40]!r} stands twice")
    return made


def _finite(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise _Refused(f"the number {literal[:40]!r} is out of range")
    return number


def _refuse(constant: str) -> NoReturn:
    raise _Refused(f"{constant} is not JSON")


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse, strict=strict
    )


_STRICT: Final = _decoder(strict=True)
_LENIENT: Final = _decoder(strict=False)


def _decode(decoder: json.JSONDecoder, piece: Piece) -> Parsed | _Failure:
    try:
        return Parsed(value=decoder.decode(piece.text))
    except json.JSONDecodeError as error:
        return _Failure(piece.start + error.pos, error.msg)
    except _Refused as error:
        return _Failure(piece.start, str(error))
    except ValueError:  # the interpreter's own bound on digits
        return _Failure(piece.start, "an integer has too many digits")
    except RecursionError:
        return _Failure(piece.start, _TOO_DEEP)


def _agreed(values: list[JsonValue], position: int) -> Parsed | _Failure:
    if len({json.dumps(value, sort_keys=True) for value in values}) == 1:
        return Parsed(value=values[0])
    return _Failure(position, f"it holds {len(values)} JSON values that differ")


def _from_fences(
    decoder: json.JSONDecoder, whole: Piece, blocks: list[Fence]
) -> Iterator[JsonValue]:
    for block in blocks:
        if block.json_like:
            body = whole.cut(*block.body)
            answer = after_leading(body, thoughts(body.text))
            for piece in (body, answer):
                if isinstance(found := _decode(decoder, piece), Parsed):
                    yield found.value
                    break


# ---------------------------------------------------------------- prose


def _lines(text: str) -> list[JsonValue]:
    """Return the objects of a text that is nothing else, or an empty list."""
    values: list[JsonValue] = []
    at = 0
    while at < len(text):
        found = _value_at(text, at)
        if found is None or not isinstance(found[0], dict):
            return []
        values.append(found[0])
        at = found[1]
        while at < len(text) and text[at] in _BETWEEN:
            at += 1
    return values


def _objects(text: str, covered: list[Span]) -> list[JsonValue]:
    """Return the objects, and arrays of objects, that stand inside no other bracket.

    None at all when one that begins like them cannot be read: it may be the one that was meant,
    and what stands inside it is no answer of its own.
    """
    values: list[JsonValue] = []
    at = depth = 0
    while (bracket := _BRACKET.search(text, at)) is not None:
        start = bracket.start()
        at = start + 1
        if (end := covering(start, covered)) is not None:
            at = end
        elif bracket[0] in "]}":
            depth = max(0, depth - 1)
        elif depth > 0 or not _BEGINNING.match(text, start):
            depth += 1
        elif (found := _value_at(text, start)) is None:
            return []
        else:
            values.append(found[0])
            at = found[1]
    return values


def _value_at(text: str, start: int) -> tuple[JsonValue, int] | None:
    try:
        return _LENIENT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
