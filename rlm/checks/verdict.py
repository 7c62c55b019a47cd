"""What a check says of a result: a union of three frozen classes, and how values become one. Pure.

A value says whether it passed by its field `pass` (`passed`, where that is a word of the language),
by its `status`, or by both. What counts is written out, and nothing else does:

=============== ============================ =================================
field           passed                       not passed
=============== ============================ =================================
boolean         True                         False
number          1                            0
text            true yes y pass passed 1     false no n fail failed 0
status          satisfied                    needs_revision (try again), failed (give up)
=============== ============================ =================================

Case and blanks around do not matter. Anything else is no verdict: it is neither a pass nor a fail,
and says that who judged is broken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal, Protocol, cast

__all__ = [
    "Failed",
    "NeedsRevision",
    "Satisfied",
    "Status",
    "Unusable",
    "Verdict",
    "read_boolean",
    "read_verdict",
    "shape_of",
    "status_of",
]

Status = Literal["satisfied", "needs_revision", "failed"]

_PASSED: Final = frozenset({"true", "yes", "y", "pass", "passed", "1"})
_NOT_PASSED: Final = frozenset({"false", "no", "n", "fail", "failed", "0"})
_STATUSES: Final = frozenset({"satisfied", "needs_revision", "failed"})
_OWN: Final = frozenset({"pass", "passed", "status", "score", "critique", "suggestions"})
_SHOWN_KEYS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graded:
    score: float | None = None
    """As the judge gave it, on its own scale; None when it gave none. Nothing is computed of it."""
    critique: str = ""
    """What is amiss, for the next attempt."""
    suggestions: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """Whatever else the value held."""
    temperature_dropped: bool = False
    """The grader's temperature was refused, so that it judged at its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Satisfied(_Graded):
    """The result is what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsRevision(_Graded):
    """It is not, and another attempt may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_Graded):
    """It is not, and to go on would be of no use."""


Verdict = Satisfied | NeedsRevision | Failed
_KINDS: Final[Mapping[str, type[Satisfied | NeedsRevision | Failed]]] = {
    "satisfied": Satisfied,
    "needs_revision": NeedsRevision,
    "failed": Failed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A value that is no verdict."""

    what: str
    """Why, by keys and types; never by values, which may be anybody's."""


def status_of(verdict: Verdict) -> Status:
    """Return the word for a verdict."""
    match verdict:
        case Satisfied():
            return "satisfied"
        case NeedsRevision():
            return "needs_revision"
        case Failed():
            return "failed"


def read_verdict(value: object) -> Verdict | Unusable:
    """Return the verdict that a value is: one of ours, a mapping, or an object with such fields.

    Fields that are properties are read, and what they raise is the caller's to handle.
    """
    if isinstance(value, Satisfied | NeedsRevision | Failed):
        sound = dataclasses.replace(
            value,
            score=_score(value.score),
            critique=_text(value.critique),
            suggestions=_texts(value.suggestions),
        )
        return value if sound == value else sound  # who made it may have filled in anything
    fields = _fields(value)
    if fields is None:
        return Unusable(what=f"it is {shape_of(value)}, where a verdict has `pass` or `status`")
    status = _status(fields)
    if isinstance(status, Unusable):
        return status
    return _KINDS[status](
        score=_score(fields.get("score")),
        critique=_text(fields.get("critique")),
        suggestions=_texts(fields.get("suggestions")),
        extra={key: held for key, held in fields.items() if key not in _OWN},
    )


def read_boolean(value: object) -> bool | Unusable:
    """Return a boolean that is one; what is merely true or false in some language is not."""
    plain = _plain(value)
    return plain if isinstance(plain, bool) else Unusable(what=f"it is {shape_of(value)}, no bool")


def shape_of(value: object) -> str:
    """Return what kind of thing a value is, by type and keys, and never what it holds."""
    name = type(value).__name__
    fields = _fields(value)
    if value is None or fields is None:
        return "None" if value is None else f"of type {name}"
    keys = sorted(fields)
    shown = ", ".join(repr(key[:40]) for key in keys[:_SHOWN_KEYS])
    more = ", …" if len(keys) > _SHOWN_KEYS else ""
    return f"of type {name} with the keys [{shown}{more}]"


def _status(fields: Mapping[str, object]) -> Status | Unusable:
    """Return what `pass`, `passed` and `status` agree on."""
    named = {key: fields[key] for key in ("pass", "passed") if fields.get(key) is not None}
    passes = {_passed(held) for held in named.values()}
    if None in passes:
        odd = next(key for key, held in named.items() if _passed(held) is None)
        return Unusable(what=f"its {odd!r} is of type {type(named[odd]).__name__} and says nothing")
    status = _known_status(fields.get("status"))
    if status is not None:
        passes.add(status == "satisfied")
    if not passes:
        keys = ", ".join(repr(key[:40]) for key in sorted(fields)[:_SHOWN_KEYS])
        return Unusable(
            what=f"it has neither a `pass` nor a `status` of ours: its keys are [{keys}]"
        )
    if len(passes) > 1:
        return Unusable(what="it contradicts itself: `pass` and `status` do not agree")
    return status or ("satisfied" if passes == {True} else "needs_revision")


def _passed(value: object) -> bool | None:
    plain = _plain(value)
    if isinstance(plain, str):
        word = plain.strip().casefold()
        return True if word in _PASSED else False if word in _NOT_PASSED else None
    # A number that is neither may count anything: tests, errors, points of a hundred.
    return bool(plain) if isinstance(plain, int | float) and plain in (0, 1) else None


def _known_status(value: object) -> Status | None:
    if not isinstance(value, str):
        return None
    word = value.strip().casefold().replace("-", "_").replace(" ", "_")
    return cast("Status", word) if word in _STATUSES else None


def _plain(value: object) -> object:
    """Return a scalar of numpy as Python's own: its booleans are none otherwise."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return cast("_Scalar", value).item()
    return value


class _Scalar(Protocol):
    def item(self) -> object: ...


def _score(value: object) -> float | None:
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return None
    try:
        score = float(plain)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return score if isfinite(score) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        return ()
    items = cast("list[object] | tuple[object, ...]", value)
    return tuple(item for item in items if isinstance(item, str))


def _fields(value: object) -> dict[str, object] | None:
    """Return what a mapping or an object with attributes holds; None for what has no fields."""
    if isinstance(value, Mapping):
        return {str(key): held for key, held in cast("Mapping[object, object]", value).items()}
    if isinstance(value, type | str | bytes | int | float | list | set | frozenset):
        return None
    found = {name: getattr(value, name) for name in _names(value) if hasattr(value, name)}
    return found or None


def _names(value: object) -> Iterator[str]:
    """Yield the fields of an object, and those of a verdict that it may have as properties."""
    yield from _OWN
    if dataclasses.is_dataclass(value):
        yield from (f.name for f in dataclasses.fields(value))
    held = cast("dict[str, object]", getattr(value, "__dict__", {}))
    yield from (name for name in held if not name.startswith("_"))
    yield from cast("tuple[str, ...]", getattr(value, "_fields", ()))  # of a named tuple
