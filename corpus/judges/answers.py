"""What a chat judge's reply says of each item: the reading, without the asking. Pure.

An answer counts when it is given under the alias of an item that was shown and is one of the
question's choices. Everything else is dropped and counted, or leaves a gap that says why; a number
that the model states is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, assert_never, cast

import orjson

from corpus.prompts import unsure_word
from corpus.questions import OneOf, Question, YesNo
from corpus.quotes import find_quote
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Unsure, Verdict
from executors.makers import maker
from executors.messages import ResponseSchema
from executors.replies import JsonValue, Unparsed, read_json

__all__ = ["AnswerReader", "Answers", "Gap", "Outcome", "place_of"]

_COULD_NOT_TELL: Final = Unsure(reason="the judge could not tell")
_TWO_ANSWERS: Final = Unsure(reason="the judge gave two different answers")
_SEVERAL: Final = Unsure(reason="the judge gave several answers at once")
_NO_QUOTE: Final = Unsure(reason="the judge quoted nothing")
_WRONG_QUOTE: Final = Unsure(reason="the words that the judge quoted are not in the text")

# Quotes, brackets and list marks around a number are how models write an alias; "01" and "1.0"
# are other names and may be somebody's ids.
_ALIAS: Final = re.compile(
    r"""[\s\u200b\ufeff"'`*#(\[{<]*(?:(?:item|alias|text)\b[\s:#]*)?"""
    r"""(0|[1-9][0-9]{0,5})[\s\u200b\ufeff"'`*)\]}>.:]*""",
    re.IGNORECASE,
)
_ALIAS_KEYS: Final = ("alias", "item", "id", "index", "key")
_ANSWER_KEYS: Final = ("answer", "label", "verdict")
_AROUND: Final = "\"'`*_.!“”„«» \t\r\n\u00a0\u200b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """An item without a verdict."""

    reason: str
    again: bool = True
    """Whether asking once more may fill it."""
    narrow: bool = False
    """Whether it may be another text's fault, and asking about fewer at once may fill it."""


Outcome = Verdict | Gap

_LEFT_OUT: Final = Gap(reason="the judge left it out")
_NO_CHOICE: Final = Gap(reason="the judge's answer is none of the choices")
_UNREADABLE: Final = Gap(reason="the judge's reply is not the JSON that was asked for")
_EMPTY: Final = Gap(reason="the judge's reply is empty")
_SHIFTED: Final = Gap(reason="the judge numbered the texts from 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One outcome for each item shown, in their order."""

    outcomes: list[Outcome]
    foreign: int = 0
    """Answers for aliases that were not shown."""


_answers = maker(Answers)


class AnswerReader:
    """Reads replies to one question.

    Args:
        quotes: a yes, or a label, needs words that stand in the text; without them it is unsure.
    """

    def __init__(self, question: Question, *, quotes: bool) -> None:
        self._quotes = quotes
        self._choices = _choices(question)
        self._words = _words(question)
        self._schemas: dict[int, ResponseSchema] = {}

    def schema(self, count: int) -> ResponseSchema:
        """Return the schema of a reply for `count` items: one required key an alias."""
        found = self._schemas.get(count)
        if found is None:
            found = self._schemas[count] = self._schema(_aliases(count))
        return found

    def shortest(self, count: int) -> str:
        """Return the shortest reply that answers for `count` items."""
        word = min(self._words, key=len)
        answer = {"answer": word, "quote": None} if self._quotes else word
        return orjson.dumps(dict.fromkeys(_aliases(count), answer)).decode()

    def read(self, text: str, parts: Sequence[Part]) -> Answers:
        """Return what a finished reply says of the parts shown under the aliases 1 to n."""
        if (plain := self._plain(text, len(parts))) is not None:
            return _answers(outcomes=plain)
        parsed = read_json(text)
        if isinstance(parsed, Unparsed):
            return Answers(outcomes=[_UNREADABLE if text.strip() else _EMPTY] * len(parts))
        outcomes: list[Outcome] = [_LEFT_OUT] * len(parts)
        given: dict[int, Verdict | None] = {}
        foreign = 0
        from_zero = False
        for alias, value in _pairs(parsed.value, len(parts)):
            verdict = self._verdict(value)
            place = place_of(alias, len(parts))
            if place is None:
                foreign += verdict is not None
                from_zero = from_zero or _number(alias) == 0
            elif place in given and given[place] != verdict:
                outcomes[place] = _TWO_ANSWERS
            elif place not in given:
                given[place] = verdict
                outcomes[place] = self._outcome(verdict, value, parts[place])
        if from_zero and len(parts) - 1 not in given:
            # Every answer may be the next text's.
            outcomes = [_SHIFTED] * len(parts)
        return Answers(outcomes=outcomes, foreign=foreign)

    def _plain(self, text: str, count: int) -> list[Outcome] | None:
        """Read what nearly every reply is, fast: each alias as it was shown, with a plain choice."""
        # With four quotes an answer, no alias can stand twice, which orjson would not tell.
        if self._quotes or text.count('"') != 4 * count:
            return None
        try:
            # What is no object of words raises, or is no choice either.
            words = cast("dict[str, str]", orjson.loads(text))
            said = map(words.__getitem__, _aliases(count))
            return list(map(self._choices.__getitem__, said))
        except (AttributeError, KeyError, TypeError, orjson.JSONDecodeError):
            return None

    def _verdict(self, value: JsonValue) -> Verdict | None:
        """Return what an answer says, None when it is none of the choices."""
        if isinstance(value, dict):
            value = next((value[key] for key in _ANSWER_KEYS if key in value), None)
        if not isinstance(value, list):
            return self._choice(value)
        named = {self._choice(label) for label in value}
        if len(named) < 2:
            return named.pop() if named else None
        return None if None in named else _SEVERAL

    def _choice(self, value: JsonValue) -> Verdict | None:
        if isinstance(value, bool | int):
            value = str(value)
        if not isinstance(value, str):
            return None
        word = value.strip().casefold()
        return self._choices.get(word) or self._choices.get(word.strip(_AROUND))

    def _outcome(self, verdict: Verdict | None, value: JsonValue, part: Part) -> Outcome:
        if verdict is None:
            return _NO_CHOICE
        if not self._quotes or not isinstance(verdict, Matched | Chosen):
            return verdict
        words = value.get("quote") if isinstance(value, dict) else None
        if not isinstance(words, str) or not words.strip():
            return _NO_QUOTE
        quote = find_quote(part, words)
        return _WRONG_QUOTE if quote is None else replace(verdict, quote=quote)

    def _schema(self, aliases: Sequence[str]) -> ResponseSchema:
        answer: dict[str, object] = {"type": "string", "enum": list(self._words)}
        if self._quotes:
            quote: dict[str, object] = {"type": ["string", "null"]}
            answer = _object({"answer": answer, "quote": quote})
        # One definition for all keys: servers bound the number of choices in a whole schema.
        keys: dict[str, object] = {alias: {"$ref": "#/$defs/answer"} for alias in aliases}
        return ResponseSchema(name="answers", schema=_object(keys) | {"$defs": {"answer": answer}})


@lru_cache(maxsize=256)
def _aliases(count: int) -> tuple[str, ...]:
    return tuple(str(n) for n in range(1, count + 1))


def place_of(alias: object, count: int) -> int | None:
    """Return the place, from 0, that an alias as a model writes it names; None when none shown."""
    number = _number(alias)
    return None if number is None or not 1 <= number <= count else number - 1


def _number(alias: object) -> int | None:
    if isinstance(alias, int) and not isinstance(alias, bool):
        return alias
    match = _ALIAS.fullmatch(alias) if isinstance(alias, str) else None
    return None if match is None else int(match[1])


def _pairs(value: JsonValue, count: int) -> Iterator[tuple[JsonValue, JsonValue]]:
    """Yield alias and answer of each entry, from an object of aliases or a list of entries."""
    if isinstance(value, dict):
        yield from _entry(_unwrapped(value, count), count)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict):
                yield from _entry(entry, count)


def _entry(
    entry: dict[str, JsonValue] | list[JsonValue], count: int
) -> Iterator[tuple[JsonValue, JsonValue]]:
    if isinstance(entry, list):
        yield from _pairs(entry, count)
        return
    alias = next((key for key in _ALIAS_KEYS if key in entry), None)
    if alias is not None and any(key in entry for key in _ANSWER_KEYS):
        yield entry[alias], entry
    else:
        yield from entry.items()


def _unwrapped(value: dict[str, JsonValue], count: int) -> dict[str, JsonValue] | list[JsonValue]:
    """Return what an envelope such as {"answers": …} holds, else the object itself."""
    if any(place_of(key, count) is not None for key in value):
        return value
    inner = [held for held in value.values() if isinstance(held, dict | list)]
    return inner[0] if len(inner) == 1 else value


def _words(question: Question) -> tuple[str, ...]:
    match question:
        case YesNo():
            return ("yes", "no", unsure_word(question))
        case OneOf(labels=labels):
            return (*labels, unsure_word(question))
        case _:
            assert_never(question)


def _choices(question: Question) -> Mapping[str, Verdict]:
    """Return the verdict of each answer, by its folded word."""
    unsure = {unsure_word(question).casefold(): _COULD_NOT_TELL}
    match question:
        case YesNo():
            yes, no = Matched(), NotMatched()
            return {"yes": yes, "true": yes, "no": no, "false": no, **unsure}
        case OneOf(labels=labels):
            return {label.strip().casefold(): Chosen(label=label) for label in labels} | unsure
        case _:
            assert_never(question)


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
