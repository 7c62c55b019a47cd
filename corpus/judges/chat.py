"""The chat judge: a model answers for each item of a window, under aliases.

A window costs one call. Where it was too much at once, cut, refused or rejected, it is narrowed down
(see `narrowing`); then items without a usable answer are asked once more by themselves, and narrowed
down in turn. What is still open after that is unresolved, with the reason. A refusal, an empty reply
or prose is never a "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from corpus.criterion import Criterion
from corpus.judges.answers import AnswerReader, Gap, Outcome
from corpus.judges.base import Ask, JudgeInfo, Window
from corpus.judges.narrowing import Narrowing, failed
from corpus.judges.notes import Notes
from corpus.judges.order import in_place, shown_order
from corpus.prompts import PROMPTS_VERSION, ask_message, judge_system, messages
from corpus.questions import OneOf, Question
from corpus.reasons import Reasons
from corpus.records import Part
from corpus.verdicts import Unresolved, Verdict
from executors.calls.calls import Calls
from executors.errors import Halted, ModelError, PromptCut, ReplayMiss, RequestRejected
from executors.events import Emit
from executors.ids import NodeId, content_key
from executors.makers import maker
from executors.messages import ModelReply, ModelRequest, StopReason
from executors.models.base import Model
from executors.tokens import estimate

__all__ = ["ChatJudge"]

_CUT: Final = Gap(reason="the judge's reply was cut at its token limit", again=False, narrow=True)
_TOO_LONG: Final = Gap(
    reason="the text is too long for the judge's window", again=False, narrow=True
)
_REFUSED: Final = Gap(reason="the model refused", again=False, narrow=True)
_UNCLEAN: Final = Gap(reason="the judge's reply did not end cleanly", again=False, narrow=True)

# Ordinals of the further calls of a pass: far from any number of passes, so that no two samples
# of a run share a key.
_AGAIN: Final = 1_000
_FEWER: Final = 2_000
_NOT_FOUND: Final = 404

_request = maker(ModelRequest)
_WINDOW: Final = 8
# Tokens of a reply: room for a model that thinks first, and a share for each item.
_BASE_TOKENS: Final = 1_024
_ITEM_TOKENS: Final = 12
_QUOTE_TOKENS: Final = 160


class ChatJudge:
    """Asks a chat model about whole windows.

    Args:
        node: the node that the calls belong to.
        emit: where `JudgeNoted` goes; where the calls' events go when None.
        quotes: a match has to come with words that code finds in the text; a match without them
            is unsure.
        temperature: None sends none.
        repair: ask once more for items without a usable answer.
        reply_tokens: bound on the tokens of a reply, thinking included; sized by the window when
            None.
    """

    def __init__(
        self,
        calls: Calls,
        model: Model,
        criterion: Criterion,
        *,
        node: NodeId,
        emit: Emit | None = None,
        quotes: bool = False,
        temperature: float | None = 0.0,
        repair: bool = True,
        reply_tokens: int | None = None,
    ) -> None:
        self._calls = calls
        self._model = model
        self._node = node
        self._emit = emit or calls.emit
        self._reasons = Reasons()
        self._repair = repair
        self._temperature = temperature
        self._reply_tokens = reply_tokens
        self._item_tokens = _tokens_of_answer(criterion.question, quotes=quotes)
        self._reader = AnswerReader(criterion.question, quotes=quotes)
        self._system = judge_system(criterion, quotes=quotes)
        model_info = model.info
        self._info = JudgeInfo(
            kind="chat",
            name=f"chat {model_info.spec}",
            identity=content_key(
                *("chat", PROMPTS_VERSION, model_info.origin, model_info.provider),
                *(model_info.name, model_info.identity),
                repr((model_info.structured_output, quotes, temperature, repair, reply_tokens)),
            ),
            deterministic=False,
            scoring=False,
            pools=False,
            window=_WINDOW,
        )

    @property
    def info(self) -> JudgeInfo:
        """Constant for the life of the judge."""
        return self._info

    def asks(self, window: Window) -> tuple[Ask]:
        """Return the one request that asks about a whole window; see `AskingJudge.asks`."""
        parts = [window.items[place] for place in shown_order(window)]
        request = self._request(parts, self._tokens(len(parts)))
        shortest = self._reader.shortest(len(parts))
        return (Ask(request=request, ordinal=window.pass_index, shortest=shortest),)

    async def judge(self, window: Window) -> Sequence[Verdict]:
        """Return one verdict for each item; see `Judge.judge`."""
        order = shown_order(window)
        parts = list(map(window.items.__getitem__, order))
        notes = Notes(calls=window.calls)
        outcomes = await self._first(parts, window.pass_index, notes)
        if Gap in map(type, outcomes):
            if self._repair:
                await self._second(parts, outcomes, window.pass_index, notes)
            verdicts = [_verdict(outcome) for outcome in outcomes]
        else:
            verdicts = cast("list[Verdict]", outcomes)
        if window.pass_index > 0:
            verdicts = in_place(order, verdicts)
        notes.report(self._emit, window, verdicts, node=self._node, clock=self._calls.clock)
        return verdicts

    async def _first(self, parts: list[Part], pass_index: int, notes: Notes) -> list[Outcome]:
        """Ask about all parts together, and about fewer where that fails for what they hold."""
        tokens = self._tokens(len(parts))
        rejected: ModelError | None = None
        try:
            outcomes = await self._look(parts, tokens, notes, ordinal=pass_index)
        except ModelError as error:
            if len(parts) == 1 or not _is_about_texts(error):
                raise
            rejected = error
            outcomes = _each(self._gap(error), parts)
        gap = failed(outcomes)
        if gap is None:
            return outcomes
        # What was cut gets as much room as before, for fewer parts.
        room = tokens if gap is _CUT else None
        outcomes = await self._narrowed(parts, outcomes, pass_index, notes, room=room)
        if rejected is not None and failed(outcomes) is not None:
            raise rejected
        return outcomes

    async def _narrowed(
        self,
        parts: list[Part],
        outcomes: list[Outcome],
        pass_index: int,
        notes: Notes,
        *,
        room: int | None,
    ) -> list[Outcome]:
        """Ask about fewer at once; `room` are the tokens of a reply, sized by the parts when None."""

        async def look(some: list[Part], kept: bool) -> list[Outcome]:
            tokens = self._tokens(len(some)) if room is None else room
            return await self._try(some, tokens, notes, ordinal=_FEWER + pass_index, kept=kept)

        return await Narrowing(look)(parts, outcomes)

    async def _second(
        self, parts: list[Part], outcomes: list[Outcome], pass_index: int, notes: Notes
    ) -> None:
        """Ask once more about the parts without a usable answer, and fill in what comes."""
        open_places = [
            place
            for place, outcome in enumerate(outcomes)
            if isinstance(outcome, Gap) and outcome.again
        ]
        if not open_places:
            return
        asked = [parts[place] for place in open_places]
        tokens = self._tokens(len(asked))
        kept = failed(outcomes) is None

        async def look(some: list[Part], kept: bool) -> list[Outcome]:
            ordinal = _AGAIN + pass_index
            return await self._try(some, tokens, notes, ordinal=ordinal, kept=kept, again=True)

        filled = await look(asked, kept)
        filled = await Narrowing(look, kept=kept, unread=True)(asked, filled)
        for place, outcome in zip(open_places, filled, strict=True):
            outcomes[place] = outcome
            notes.repaired += not isinstance(outcome, Gap)

    async def _try(
        self,
        parts: list[Part],
        tokens: int,
        notes: Notes,
        *,
        ordinal: int,
        kept: bool = False,
        again: bool = False,
    ) -> list[Outcome]:
        """Ask; an error becomes gaps. A halt does so when there are verdicts that it would lose."""
        try:
            return await self._look(parts, tokens, notes, ordinal=ordinal, again=again)
        except ModelError as error:
            return _each(self._gap(error), parts)
        except Halted as halted:
            if not kept or isinstance(halted, ReplayMiss):
                raise
            return _each(Gap(reason=f"not asked: {halted.short}", again=False), parts)

    def _gap(self, error: ModelError) -> Gap:
        return Gap(
            reason=self._reasons.call_failed(error), again=False, narrow=_is_about_texts(error)
        )

    async def _look(
        self,
        parts: list[Part],
        tokens: int,
        notes: Notes,
        *,
        ordinal: int,
        again: bool = False,
    ) -> list[Outcome]:
        request = self._request(parts, tokens, again=again)
        answer = await self._calls.ask(
            self._model, request, role="judge", node=self._node, ordinal=ordinal
        )
        notes.calls.append(answer.key)
        outcomes = self._read(answer.reply, parts, notes)
        # Nobody is asked after a repair, so that what it leaves open is asked by the next session.
        if Gap in map(type, outcomes) if again else failed(outcomes) is not None:
            self._calls.void(answer, "no usable answer")
        return outcomes

    def _request(self, parts: list[Part], tokens: int, *, again: bool = False) -> ModelRequest:
        user = ask_message([part.text for part in parts], again=again)
        structured = self._model.info.structured_output
        return _request(
            messages=messages(self._system, user),
            max_tokens=tokens,
            temperature=self._temperature,
            schema=self._reader.schema(len(parts)) if structured else None,
        )

    def _read(self, reply: ModelReply, parts: list[Part], notes: Notes) -> list[Outcome]:
        if (unclean := _ENDS[reply.stop]) is not None:
            notes.keep(reply.text)
            return _each(unclean, parts)
        answers = self._reader.read(reply.text, parts)
        notes.foreign += answers.foreign
        if failed(answers.outcomes) is not None:
            notes.keep(reply.text)
        return answers.outcomes

    def _tokens(self, items: int) -> int:
        if self._reply_tokens is not None:
            return self._reply_tokens
        wanted = _BASE_TOKENS + items * self._item_tokens
        window = self._model.info.context_window
        return wanted if window is None else max(1, min(wanted, window // 2))


_ENDS: Final[dict[StopReason, Gap | None]] = {
    "end": None,
    "max_tokens": _CUT,
    "context_exceeded": _TOO_LONG,
    "refusal": _REFUSED,
    "tool_use": _UNCLEAN,
    "pause": _UNCLEAN,
    "other": _UNCLEAN,
}


def _is_about_texts(error: ModelError) -> bool:
    """Whether a call may have failed for what it showed, so that other texts would not."""
    if isinstance(error, RequestRejected):
        return error.status != _NOT_FOUND
    return isinstance(error, PromptCut)


def _each(gap: Gap, parts: Sequence[Part]) -> list[Outcome]:
    return [gap for _ in parts]


def _verdict(outcome: Outcome) -> Verdict:
    return Unresolved(reason=outcome.reason) if isinstance(outcome, Gap) else outcome


def _tokens_of_answer(question: Question, *, quotes: bool) -> int:
    label = max(map(estimate, question.labels)) if isinstance(question, OneOf) else 0
    return _ITEM_TOKENS + label + (_QUOTE_TOKENS if quotes else 0)
