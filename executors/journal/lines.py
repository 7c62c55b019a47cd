"""The lines of a segment. Compact, since there is one a call: short keys, nothing that is None.

{"i": key, "t": tokens, "u": usd}                      an intent, with its worst case
{"a": key, "p": paid, "s": stop, "x": text, ...}       an answer; "b" names the blob of a long one
{"f": key, "p": paid, "e": error}                      a failure; no error: cancelled, or a bound
{"v": key, "w": why}                                   an answer that was of no use
{"n": scope, "k": keys, "v": values, "c": call}        notes; keys as one hex string
{"g": key, "p": paid}                                  a call whose answer was forgotten on request
{"t": key, "n": name}                                  a tool that is about to run
{"d": key, "x": text, "e": true}                       what it gave; "e" for an error, "b" as above

The first key of a line is its kind. A line of a kind that is not known here is of a newer version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias, cast

from executors.errors import ModelError
from executors.ids import ContentKey
from executors.journal.failures import freeze
from executors.journal.json_lines import decode, encode
from executors.journal.records import NOTE_KEY_BYTES, Paid
from executors.replies import JsonValue

__all__ = [
    "CALL_PREFIX",
    "KEY_BYTES",
    "Answered",
    "Begun",
    "Done",
    "Fields",
    "Forgotten",
    "Intended",
    "Line",
    "Noted",
    "Unanswered",
    "Unknown",
    "Voided",
    "begun_line",
    "done_line",
    "failure_line",
    "forgotten_line",
    "intent_line",
    "note_lines",
    "paid_fields",
    "read_line",
    "void_line",
]

Fields: TypeAlias = dict[str, object]

KEY_BYTES: Final = 16
"""Length of a call's key, which stands in lines as hex."""

CALL_PREFIX: Final = 8
"""Hex digits of a call's key by which a note says where it came from."""

LONGEST_NOTES: Final = 32 * 1024  # bytes of one line of notes, unless one note alone is longer
_WHY: Final = 200  # characters of a reason that are kept
_MOST: Final = 1 << 53  # of anything that is counted, so that sums of it fit a table


# ---------------------------------------------------------------- writing


def intent_line(key: ContentKey, tokens: int, usd: Decimal | None) -> bytes:
    """Return the line of a call that is about to leave."""
    if usd is None:
        return f'{{"i":"{key}","t":{tokens}}}\n'.encode()
    return f'{{"i":"{key}","t":{tokens},"u":"{usd}"}}\n'.encode()


def failure_line(key: ContentKey, error: ModelError | None, paid: Paid) -> bytes:
    """Return the line of a call that ended without an answer."""
    fields: Fields = {"f": key, "p": paid_fields(paid)}
    if error is not None:
        fields["e"] = freeze(error)
    return encode(fields)


def void_line(key: ContentKey, why: str) -> bytes:
    """Return the line that takes an answer back."""
    return encode({"v": key, "w": why[:_WHY]})


def forgotten_line(key: ContentKey, paid: Paid) -> bytes:
    """Return what is left of an answer whose texts were erased: that it was paid."""
    return encode({"g": key, "p": paid_fields(paid)})


def note_lines(
    scope: ContentKey, keys: bytes, values: Sequence[JsonValue], call: str | None
) -> list[bytes]:
    """Return the lines of notes: one, or as many as keep each of them readable."""
    fields: Fields = {"n": scope, "k": keys.hex(), "v": values}
    if call is not None:
        fields["c"] = call[:CALL_PREFIX]
    line = encode(fields)
    if len(line) <= LONGEST_NOTES or len(values) < 2:
        return [line]
    step = max(1, len(values) * LONGEST_NOTES // (len(line) * 2))
    lines: list[bytes] = []
    for n in range(0, len(values), step):
        part = keys[n * NOTE_KEY_BYTES : (n + step) * NOTE_KEY_BYTES]
        lines += note_lines(scope, part, values[n : n + step], call)
    return lines


def begun_line(key: ContentKey, name: str) -> bytes:
    """Return the line of a tool that is about to run."""
    return encode({"t": key, "n": name[:_WHY]})


def done_line(key: ContentKey, result: str, *, failed: bool) -> bytes:
    """Return the line of what a tool gave."""
    fields: Fields = {"d": key, "x": result}
    if failed:
        fields["e"] = True
    return encode(fields)


def paid_fields(paid: Paid) -> list[object]:
    """Return what a call drew: tokens, requests, and the cost where it is known."""
    if paid.usd is None:
        return [paid.tokens, paid.attempts]
    return [paid.tokens, paid.attempts, str(paid.usd)]


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Intended:
    """A call was about to leave, with this worst case."""

    key: bytes
    tokens: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Answered:
    """A call was answered; the reply itself is thawed where it is wanted."""

    key: bytes
    paid: Paid
    clean: bool
    blob: str | None
    fields: Fields


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A call ended without an answer."""

    key: bytes
    paid: Paid
    error: object
    """As `failures.thaw` takes it; None when it was cancelled, or a bound ended it."""


@dataclass(frozen=True, slots=True)
class Voided:
    """An answer turned out to be of no use."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Noted:
    """Values of contents under a scope."""

    scope: str
    keys: bytes
    values: list[JsonValue]
    call: str | None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A call whose answer was erased on request; what it drew stands."""

    key: bytes
    paid: Paid


@dataclass(frozen=True, slots=True)
class Begun:
    """A tool was about to run."""

    key: bytes
    name: str


@dataclass(frozen=True, slots=True)
class Done:
    """A tool ran to its end."""

    key: bytes
    failed: bool
    result: str | None
    """None where it stands in a blob."""
    blob: str | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line of a newer version."""

    kind: str


Line: TypeAlias = (
    Intended | Answered | Unanswered | Voided | Noted | Forgotten | Begun | Done | Unknown
)


def read_line(raw: bytes) -> Line | None:
    """Return what a line says; None when it is damaged."""
    try:
        fields = decode(raw)
        if not isinstance(fields, dict):
            return None
        return _line(cast("Fields", fields))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _line(fields: Fields) -> Line:
    kind = next(iter(fields), "")
    match kind:
        case "i":
            return Intended(_key(fields[kind]), _whole(fields["t"]), _usd(fields.get("u")))
        case "a":
            return _answered(fields)
        case "f":
            return Unanswered(_key(fields[kind]), _paid(fields["p"]), fields.get("e"))
        case "v":
            return Voided(_key(fields[kind]))
        case "n":
            return _noted(fields)
        case "g":
            return Forgotten(_key(fields[kind]), _paid(fields["p"]))
        case "t":
            return Begun(_key(fields[kind]), _text(fields["n"]))
        case "d":
            return _done(fields)
        case _:
            return Unknown(kind)


def _answered(fields: Fields) -> Answered:
    blob = fields.get("b")
    if blob is None:
        _text(fields["x"])
    return Answered(
        _key(fields["a"]),
        _paid(fields["p"]),
        _is_clean(fields),
        None if blob is None else _key(blob).hex(),  # it becomes the name of a file
        fields,
    )


def _is_clean(fields: Fields) -> bool:
    """Say whether an answer may be given again: one that ended, or that goes on with its tools."""
    stop = fields.get("s")
    if stop == "tool_use":
        return "c" in fields or "k" in fields
    return stop is None or stop == "pause"


def _done(fields: Fields) -> Done:
    blob = fields.get("b")
    return Done(
        _key(fields["d"]),
        fields.get("e") is True,
        _text(fields["x"]) if blob is None else None,
        None if blob is None else _key(blob).hex(),
    )


def _noted(fields: Fields) -> Noted:
    keys, values, call = bytes.fromhex(_text(fields["k"])), fields["v"], fields.get("c")
    if not isinstance(values, list):
        raise TypeError("notes are a list")
    listed = cast("list[JsonValue]", values)
    if len(keys) != NOTE_KEY_BYTES * len(listed):
        raise ValueError("each note has a key")
    return Noted(_name(fields["n"]), keys, listed, None if call is None else _name(call))


def _paid(value: object) -> Paid:
    if not isinstance(value, list):
        raise TypeError("what was paid is a list")
    parts = cast("list[object]", value)
    usd = _usd(parts[2]) if len(parts) > 2 else None
    return Paid(tokens=_whole(parts[0]), attempts=_whole(parts[1]), usd=usd)


def _usd(value: object) -> Decimal | None:
    if value is None:
        return None
    usd = Decimal(str(value))
    if not (
        usd.is_finite() and 0 <= usd < _MOST
    ):  # less than nothing would make room under a bound
        raise ValueError("a cost is finite, and not below zero")
    return usd


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("a count is a whole number")
    if not 0 <= value < _MOST:
        raise ValueError("a count is not below zero")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("it is no text")
    return value


def _name(value: object) -> str:
    """Return a text that tables can be searched by: one without half a character."""
    name = _text(value)
    name.encode("utf-8")
    return name


def _key(value: object) -> bytes:
    key = bytes.fromhex(_text(value))
    if len(key) != KEY_BYTES:
        raise ValueError("a key has 128 bits")
    return key
