"""One criterion for every judge: the question, and what each kind of judge needs besides."""

from __future__ import annotations

from dataclasses import dataclass

from corpus.questions import Question, question_key
from executors.ids import ContentKey, content_key

__all__ = ["Criterion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """What is judged. Fields that a judge has no use for are ignored by it."""

    question: Question
    description: str | None = None
    """What a match looks like, for encoders; the question's text when None."""
    terms: tuple[str, ...] = ()
    """Words of which any one makes a match, for the rule judge."""

    @property
    def key(self) -> ContentKey:
        """Identifies the criterion inside verdict keys."""
        return content_key(*question_key(self.question), self.description or "", *self.terms)
