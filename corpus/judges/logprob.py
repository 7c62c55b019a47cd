"""The log-probability judge: how likely each answer is as the model's next token.

One item a call. The instructions come first and stay the same for a whole count, so that a model
reads them once; only the item is new. The probabilities are the model's own and not calibrated: this
judge ranks, and its count needs labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Final, assert_never

from corpus.criterion import Criterion
from corpus.judges.base import Ask, JudgeInfo, Window
from corpus.judges.notes import Notes
from corpus.judges.readout import Options, option_mass
from corpus.prompts import PROMPTS_VERSION, messages, score_message, score_system
from corpus.questions import OneOf, Question, YesNo
from corpus.reasons import Reasons
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Unresolved, Unsure, Verdict
from executors.calls.calls import Calls
from executors.errors import ConfigError, Halted, ModelError, ReplayMiss, ValidationError
from executors.events import Emit
from executors.ids import NodeId, content_key
from executors.messages import ModelReply, ModelRequest, StopReason
from executors.models.base import Model

__all__ = ["LogprobJudge"]

_ALTERNATIVES: Final = 20
"""What a server reports at most; so no more options than that can be read."""
_TEMPERATURE: Final = 0.0
_YES: Final = "yes"
_NO: Final = "no"

_NO_PROBABILITIES: Final = Unresolved(reason="the model reported no probabilities")
_ENDS: Final[dict[StopReason, Unresolved | None]] = {
    "end": None,
    "max_tokens": None,  # one token was asked for
    "context_exceeded": Unresolved(reason="the text is too long for the judge's window"),
    "refusal": Unresolved(reason="the model refused"),
    "tool_use": Unresolved(reason="the judge's reply did not end cleanly"),
    "pause": Unresolved(reason="the judge's reply did not end cleanly"),
    "other": Unresolved(reason="the judge's reply did not end cleanly"),
}


class LogprobJudge:
    """Reads the probability of each answer off a model's next token.

    The options of a OneOf are shown as letters, since labels are often longer than one token and
    no two models cut them alike.

    Args:
        node: the node that the calls belong to.
        emit: where `JudgeNoted` goes; where the calls' events go when None.
        floor: share of the probability that has to fall on the options together; an item below it
            is unsure.

    Raises:
        ConfigError: the model reports no log-probabilities.
        ValidationError: more labels than a server reports alternatives for, or a floor outside
            0 to 1.
    """

    def __init__(
        self,
        calls: Calls,
        model: Model,
        criterion: Criterion,
        *,
        node: NodeId,
        emit: Emit | None = None,
        floor: float = 0.5,
    ) -> None:
        _require(model, floor)
        self._calls = calls
        self._model = model
        self._node = node
        self._emit = emit or calls.emit
        self._floor = floor
        self._reasons = Reasons()
        self._question = criterion.question
        options = _options(criterion.question)
        self._codes = [code for code, _ in options]
        self._options = Options({label: (code,) for code, label in options})
        self._system = score_system(criterion, options)
        info = model.info
        self._info = JudgeInfo(
            kind="logprob",
            name=f"log-probability {info.spec}",
            identity=content_key(
                *("logprob", PROMPTS_VERSION, info.origin, info.provider, info.name),
                *(info.identity, repr((floor, _TEMPERATURE, _ALTERNATIVES))),
            ),
            deterministic=True,
            scoring=True,
            pools=False,
            window=1,
        )

    @property
    def info(self) -> JudgeInfo:
        """Constant for the life of the judge."""
        return self._info

    def asks(self, window: Window) -> list[Ask]:
        """Return one request for each item; see `AskingJudge.asks`."""
        shortest = min(self._codes, key=len)
        return [
            Ask(request=self._request(part), ordinal=window.pass_index, shortest=shortest)
            for part in window.items
        ]

    async def judge(self, window: Window) -> Sequence[Verdict]:
        """Return one verdict for each item; see `Judge.judge`.

        The items are asked one after another: windows are what runs side by side. An error that
        comes before the first verdict is raised; after it, it costs its own item alone.
        """
        notes = Notes(calls=window.calls)
        verdicts: list[Verdict] = []
        for part in window.items:
            try:
                verdicts.append(await self._ask(part, window.pass_index, notes))
            except (ModelError, Halted) as error:
                if not verdicts or isinstance(error, ReplayMiss):
                    raise
                verdicts.append(self._failed(error))
        notes.report(self._emit, window, verdicts, node=self._node, clock=self._calls.clock)
        return verdicts

    async def _ask(self, part: Part, pass_index: int, notes: Notes) -> Verdict:
        answer = await self._calls.ask(
            self._model, self._request(part), role="judge", node=self._node, ordinal=pass_index
        )
        notes.calls.append(answer.key)
        verdict = self._read(answer.reply)
        if isinstance(verdict, Unresolved | Unsure):
            notes.keep(answer.reply.text)
        if isinstance(verdict, Unresolved):
            self._calls.void(answer, verdict.reason)
        return verdict

    def _request(self, part: Part) -> ModelRequest:
        return ModelRequest(
            messages=messages(self._system, score_message(part.text, self._codes)),
            max_tokens=1,
            temperature=_TEMPERATURE,
            top_logprobs=_ALTERNATIVES,
        )

    def _failed(self, error: ModelError | Halted) -> Unresolved:
        if isinstance(error, Halted):
            return Unresolved(reason=f"not asked: {error.short}")
        return Unresolved(reason=self._reasons.call_failed(error))

    def _read(self, reply: ModelReply) -> Verdict:
        if (unclean := _ENDS[reply.stop]) is not None:
            return unclean
        if not reply.token_logprobs:
            return _NO_PROBABILITIES
        first = reply.token_logprobs[0]
        top = first.top or ((first.token, first.logprob),)
        found = option_mass(self._options, top)
        if not found.total >= self._floor or found.total == 0:  # the negation catches NaN too
            return Unsure(reason=f"only {found.total:.0%} of the probability is on the options")
        label = max(found.mass, key=found.mass.__getitem__)
        share = found.mass[label] / found.total
        match self._question:
            case YesNo():
                yes = found.mass[_YES] / found.total
                return Matched(probability=yes) if yes >= 0.5 else NotMatched(probability=yes)
            case OneOf():
                return Chosen(label=label, probability=share)
            case _:
                assert_never(self._question)


def _require(model: Model, floor: float) -> None:
    if not model.info.logprobs:
        raise ConfigError(
            f"the model {model.info.spec!r} reports no log-probabilities",
            where="judge 'logprob'",
            hint="use the chat judge (--judge chat), or a model that reports them",
        )
    if not 0 <= floor <= 1:
        raise ValidationError(f"floor={floor!r} is no share", hint="give a number from 0 to 1")


def _options(question: Question) -> list[tuple[str, str]]:
    """Return code and label of each option; the codes are one token to every model."""
    match question:
        case YesNo():
            return [(_YES, _YES), (_NO, _NO)]
        case OneOf(labels=labels):
            if len(labels) > _ALTERNATIVES:
                raise ValidationError(
                    f"{len(labels)} labels are more than the log-probability judge can read",
                    hint=f"give at most {_ALTERNATIVES}, or use the chat judge (--judge chat)",
                )
            return list(zip(ascii_uppercase, labels, strict=False))
        case _:
            assert_never(question)
