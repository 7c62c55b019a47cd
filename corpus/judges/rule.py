"""The rule judge: a predicate in code decides. Free, deterministic, the same on every machine."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

import anyio.lowlevel

from corpus.judges.base import JudgeInfo, Window
from corpus.judges.notes import Notes
from corpus.questions import OneOf, Question, YesNo
from corpus.reasons import Reasons, first_words
from corpus.verdicts import Chosen, Matched, NotMatched, Unresolved, Unsure, Verdict
from executors.clock import Clock, SystemClock
from executors.coroutines import is_async
from executors.errors import Halted, ValidationError
from executors.events import Emit
from executors.ids import NodeId, content_key

__all__ = ["Rule", "RuleJudge"]

Rule = Callable[[str], object] | Mapping[str, Callable[[str], object]]
"""What decides. For a YesNo: a function of the text that returns a bool, None (no) or an
`re.Match` (yes). For a OneOf: a function that returns a label or None (none fits), or one yes/no
function for each label."""

_WINDOW: Final = 1_000
# Records from the first on, on each of which the rule raised, before it counts as broken.
_BROKEN: Final = 20
_QUOTED: Final = re.compile(r"""(['"])(.+?)\1""")
_MATCHED: Final = Matched()
_NOT_MATCHED: Final = NotMatched()
_NO_LABEL: Final = Unsure(reason="the rule fits no label")
_NOT_ONE: Final = Unresolved(reason="the rule returned a label that the question does not have")

_Decide = Callable[[str], Verdict]


class RuleJudge:
    """Judges by code.

    A record on which the rule raises, or returns something else, is unresolved; the others go on.
    The rule reads each record whole, so that one about length or absence means what it says.

    Args:
        rule: see `Rule`; synchronous.
        name: what the rule is called. Verdicts are filed under it: a changed rule needs a new name.
        node: the node that events belong to.
        emit: where `JudgeNoted` goes, naming the records on which the rule failed.

    Raises:
        ValidationError: the rule is asynchronous, or its labels are not those of the question.
    """

    def __init__(
        self,
        rule: Rule,
        *,
        question: Question,
        name: str,
        node: NodeId | None = None,
        emit: Emit | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._decide = _decider(rule, question)
        self._reasons = Reasons()
        self._worked = False
        self._raised = 0
        self._node = node or NodeId("root")
        self._emit = emit
        self._clock = clock or SystemClock()
        self._info = JudgeInfo(
            kind="rule",
            name=name,
            identity=content_key("rule", name),
            deterministic=True,
            scoring=False,
            pools=True,
            window=_WINDOW,
        )

    @property
    def info(self) -> JudgeInfo:
        """Constant for the life of the judge."""
        return self._info

    async def judge(self, window: Window) -> Sequence[Verdict]:
        """Return one verdict for each record; see `Judge.judge`.

        Raises:
            ValidationError: the rule raised on each of the first 20 records: it is broken.
        """
        # Nothing below waits: give the loop its turn, and a cancellation its place.
        await anyio.lowlevel.checkpoint()
        decide = self._decide
        verdicts: list[Verdict] = []
        for part in window.items:
            try:
                verdicts.append(decide(part.text))
                self._worked = True
            except Halted:
                raise
            except Exception as error:  # the caller's code: one record never ends the others
                verdicts.append(self._raising(error, part.text))
                if not self._worked and self._raised >= _BROKEN:
                    raise self._broken(verdicts[-1]) from error
        if self._emit is not None:
            Notes(calls=window.calls).report(
                self._emit, window, verdicts, node=self._node, clock=self._clock
            )
        return verdicts

    def _raising(self, error: Exception, text: str) -> Unresolved:
        self._raised += 1
        kind = f"the rule raised {type(error).__name__}"
        words = str(error)
        if _tells(words, text):
            return Unresolved(reason=kind)
        return Unresolved(reason=self._reasons.told(kind, words))

    def _broken(self, last: Verdict) -> ValidationError:
        why = last.reason if isinstance(last, Unresolved) else "the rule raised"
        return ValidationError(
            f"{first_words(why, 200)}, as on each of the first {self._raised} records",
            where=self._info.name,
            hint="a rule takes the text of a record and returns True or False, or a label: "
            "try it on one text by itself",
        )


def _tells(words: str, text: str) -> bool:
    """Whether the words of an error hold the record's text, or quote some of it."""
    if text.strip() and text.strip() in words:
        return True
    return any(quoted in text or quoted in repr(text) for _, quoted in _QUOTED.findall(words))


def _decider(rule: Rule, question: Question) -> _Decide:
    functions = [rule] if callable(rule) else list(rule.values())
    for function in functions:
        if is_async(function):
            raise ValidationError(
                f"the rule {function!r} is asynchronous",
                hint="a rule is a plain function of the text; what has to wait is no rule",
            )
    match question:
        case YesNo():
            if not callable(rule):
                raise ValidationError(
                    f"rules for labels {sorted(rule)!r} and a yes/no question",
                    hint="give one function, or ask OneOf(text=…, labels=…)",
                )
            return _yes_no(rule)
        case OneOf(labels=labels):
            return _label(rule, labels) if callable(rule) else _one_of(rule, labels)
        case _:
            assert_never(question)


def _yes_no(function: Callable[[str], object]) -> _Decide:
    def decide(text: str) -> Verdict:
        said = function(text)
        if said is True:
            return _MATCHED
        if said is False or said is None:
            return _NOT_MATCHED
        return _less_plain(said)

    return decide


def _less_plain(said: object) -> Verdict:
    """Read what means yes or no without being one of Python's own."""
    if isinstance(said, re.Match):
        return _MATCHED
    if type(said).__name__ in {"bool", "bool_"}:  # numpy's, as data frames give them
        return _MATCHED if said else _NOT_MATCHED
    return _odd(said)


def _odd(said: object) -> Unresolved:
    if inspect.iscoroutine(said):
        said.close()
    return Unresolved(reason=f"the rule returned {type(said).__name__}, which is no answer")


def _label(function: Callable[[str], object], labels: Sequence[str]) -> _Decide:
    chosen = {_fold(label): Chosen(label=label) for label in labels}

    def decide(text: str) -> Verdict:
        said = function(text)
        if said is None:
            return _NO_LABEL
        if not isinstance(said, str):
            return _odd(said)
        return chosen.get(_fold(said)) or _NOT_ONE

    return decide


def _one_of(rules: Mapping[str, Callable[[str], object]], labels: Sequence[str]) -> _Decide:
    by_fold = {_fold(label): function for label, function in rules.items()}
    if len(by_fold) != len(rules) or set(by_fold) != set(map(_fold, labels)):
        raise ValidationError(
            f"rules for {sorted(rules)!r} and a question for {sorted(labels)!r}",
            hint="give one rule for each label of the question",
        )
    deciders = [(label, _yes_no(by_fold[_fold(label)])) for label in labels]

    def decide(text: str) -> Verdict:
        fits: list[str] = []
        for label, fit in deciders:
            verdict = fit(text)
            if isinstance(verdict, Unresolved):
                return verdict
            if verdict is _MATCHED:
                fits.append(label)
        return _of_fitting(fits)

    return decide


def _of_fitting(labels: Sequence[str]) -> Verdict:
    if len(labels) == 1:
        return Chosen(label=labels[0])
    if not labels:
        return _NO_LABEL
    return Unsure(reason=f"the rule fits several labels: {', '.join(labels)}")


def _fold(label: str) -> str:
    return label.strip().casefold()
