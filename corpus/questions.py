"""Typed questions: what is asked of each record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from executors.errors import ValidationError

__all__ = [
    "NO",
    "YES",
    "OneOf",
    "Question",
    "YesNo",
    "as_question",
    "classes_of",
    "question_key",
    "require_encodable",
]

_MAX_LABELS = 200
YES: Final = "yes"
NO: Final = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo:
    """Does the record match? The text is asked verbatim."""

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """Which one of the labels fits the record?"""

    text: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_text(self.text)
        if not 2 <= len(self.labels) <= _MAX_LABELS:
            raise ValidationError(
                f"{len(self.labels)} label(s) given",
                hint=f"give 2 to {_MAX_LABELS} labels, as in --one-of 'billing,bug,praise'",
            )
        folded = [label.strip().casefold() for label in self.labels]
        for label, fold in zip(self.labels, folded, strict=True):
            require_encodable(label, "a label")
            if not fold:
                raise ValidationError(f"the label {label!r} is blank")
            if folded.count(fold) > 1:
                raise ValidationError(
                    f"the label {label!r} stands twice",
                    hint="labels must differ by more than case and white space",
                )


Question = YesNo | OneOf


def as_question(question: str | Question) -> Question:
    """Return a typed question; plain text is a YesNo, verbatim."""
    match question:
        case str():
            return YesNo(text=question)
        case YesNo() | OneOf():
            return question
        case _:
            raise ValidationError(
                f"the question is a {type(question).__name__}",
                hint="ask a text, a YesNo or a OneOf; the question comes first, then the corpus",
            )


def classes_of(question: Question) -> tuple[str, ...]:
    """Return what a question tells apart: yes and no, or its labels."""
    match question:
        case YesNo():
            return (YES, NO)
        case OneOf():
            return question.labels
        case _:
            assert_never(question)


def question_key(question: Question) -> tuple[str, ...]:
    """Return what identifies a question inside content keys."""
    match question:
        case YesNo():
            return ("yes-no", question.text)
        case OneOf():
            return ("one-of", question.text, *question.labels)
        case _:
            assert_never(question)


def require_encodable(text: str, what: str) -> None:
    """Refuse a text that UTF-8 cannot hold: no model could be asked it and no receipt name it.

    Raises:
        ValidationError: it holds halves of surrogate pairs, which stand for stray bytes.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"{what} holds {text[error.start]!r}, which is no character: {text[:80]!r}",
            hint="write it in UTF-8; a terminal or file in another encoding leaves such bytes",
        ) from None


def _require_text(text: str) -> None:
    require_encodable(text, "the question")
    if not text.strip():
        raise ValidationError(
            f"the question {text!r} is blank", hint="ask something, as in 'is this spam?'"
        )
