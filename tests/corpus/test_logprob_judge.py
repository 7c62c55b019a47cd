"""The log-probability judge: a share of the options' mass, or unsure; never a guess."""

import math
from collections.abc import Callable, Iterable

import pytest

from corpus.criterion import Criterion
from corpus.events import JudgeNoted
from corpus.judges.base import Window
from corpus.judges.logprob import LogprobJudge
from corpus.prompts import read_items
from corpus.questions import OneOf, Question, YesNo
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Unresolved, Unsure, Verdict
from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.errors import (
    AuthError,
    ConfigError,
    Halted,
    ReplayMiss,
    RequestRejected,
    ValidationError,
)
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import ContentKey, NodeId
from executors.journal.records import Filed, NoJournal
from executors.messages import ModelReply, ModelRequest, StopReason, TokenLogprob
from executors.models.base import ModelInfo
from executors.models.fakes.scripted import ScriptedModel, Turn

pytestmark = pytest.mark.anyio

FIRE = YesNo(text="Is it about fire?")
INFO = ModelInfo(provider="scripted", name="scorer", origin="in-process", logprobs=True)


def scores(*, stop: StopReason = "max_tokens", **probabilities: float) -> ModelReply:
    top = tuple((token, math.log(p)) for token, p in probabilities.items())
    first = TokenLogprob(token=top[0][0], logprob=top[0][1], top=top)
    return ModelReply(text=top[0][0], stop=stop, token_logprobs=(first,))


class Bench:
    def __init__(
        self,
        script: Iterable[Turn] | Callable[[ModelRequest], Turn],
        *,
        question: Question = FIRE,
        floor: float = 0.5,
        caps: Caps | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.model = ScriptedModel(script)
        self.model._info = INFO
        calls = Calls(
            allowance=CapsAllowance(caps or Caps(), SystemClock()), emit=self.events.append
        )
        criterion = Criterion(question=question)
        self.judge = LogprobJudge(calls, self.model, criterion, node=NodeId("root.0"), floor=floor)

    async def of(self, *texts: str) -> list[Verdict]:
        items = tuple(Part(ordinal=n, id=f"r{n}", text=text) for n, text in enumerate(texts))
        return list(await self.judge.judge(Window(index=2, pass_index=0, items=items)))

    @property
    def noted(self) -> list[JudgeNoted]:
        return [event for event in self.events if isinstance(event, JudgeNoted)]


async def test_a_verdict_carries_the_share_of_yes_in_the_mass_of_both() -> None:
    bench = Bench([scores(Yes=0.6, no=0.2, maybe=0.2), scores(NO=0.5, yes=0.1)])
    yes, no = await bench.of("a fire", "calm")
    assert isinstance(yes, Matched)
    assert isinstance(no, NotMatched)
    assert yes.probability == pytest.approx(0.75)
    assert no.probability == pytest.approx(1 / 6)
    assert bench.noted == []


async def test_one_item_a_call_behind_the_same_instructions() -> None:
    bench = Bench(lambda _: scores(yes=0.9, no=0.1))
    await bench.of("a fire", "calm")
    first, second = bench.model.requests
    assert [read_items(first), read_items(second)] == [[("1", "a fire")], [("1", "calm")]]
    assert first.messages[0] == second.messages[0]
    assert (first.max_tokens, first.top_logprobs, first.temperature) == (1, 20, 0.0)
    assert first.schema is None


async def test_when_little_falls_on_the_options_the_item_is_unsure() -> None:
    bench = Bench([scores(Well=0.7, yes=0.2, no=0.1)])
    assert await bench.of("text") == [
        Unsure(reason="only 30% of the probability is on the options")
    ]
    assert bench.noted[0].snippet == "Well"
    bench = Bench([scores(Well=0.7, yes=0.2, no=0.1)], floor=0.25)
    assert isinstance((await bench.of("text"))[0], Matched)


@pytest.mark.parametrize("floor", [0.0, 0.5])
async def test_no_mass_and_no_number_are_never_a_no(floor: float) -> None:
    nothing = scores(Well=1.0)
    odd = TokenLogprob(token="yes", logprob=math.nan, top=(("yes", math.nan), ("no", -1.0)))
    bench = Bench([nothing, ModelReply(text="yes", stop="end", token_logprobs=(odd,))], floor=floor)
    for verdict in await bench.of("a", "b"):
        assert isinstance(verdict, Unsure)


@pytest.mark.case("K3-7", "K3-8", "K3-11")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelReply(text="yes", stop="end"), "reported no probabilities"),
        (ModelReply(text="", stop="end", token_logprobs=()), "reported no probabilities"),
        (scores(yes=0.9, no=0.1, stop="refusal"), "the model refused"),
        (scores(yes=0.9, no=0.1, stop="context_exceeded"), "too long"),
        (scores(yes=0.9, no=0.1, stop="other"), "did not end cleanly"),
    ],
)
async def test_a_reply_without_a_reading_is_unresolved(reply: ModelReply, reason: str) -> None:
    bench = Bench([reply])
    (verdict,) = await bench.of("text")
    assert isinstance(verdict, Unresolved)
    assert reason in verdict.reason
    assert (bench.noted[0].missing, bench.noted[0].items) == (1, ("r0",))


async def test_a_token_without_alternatives_counts_by_itself() -> None:
    only = TokenLogprob(token=" Yes", logprob=math.log(0.9))
    (verdict,) = await Bench([ModelReply(text=" Yes", stop="end", token_logprobs=(only,))]).of("x")
    assert verdict == Matched(probability=1.0)


@pytest.mark.case("K6-16")
async def test_labels_are_shown_as_letters() -> None:
    """`col_A` and `col_B` begin with the same token; letters never do."""
    question = OneOf(text="Which column?", labels=("col_A", "col_B", "bill", "billing"))
    bench = Bench([scores(A=0.1, b=0.6, D=0.1, col=0.2)], question=question)
    (verdict,) = await bench.of("text")
    assert isinstance(verdict, Chosen)
    assert verdict.label == "col_B"
    assert verdict.probability == pytest.approx(0.75)
    system = bench.model.requests[0].messages[0].content
    assert 'A for "col_A", B for "col_B", C for "bill", D for "billing"' in system
    assert (
        bench.model.requests[0]
        .messages[1]
        .content.endswith("Answer with one of A, B, C, D and nothing else:")
    )


async def test_an_error_costs_its_own_item_and_before_any_verdict_the_window() -> None:
    good = scores(yes=0.9, no=0.1)
    bench = Bench([good, RequestRejected("no"), good])
    verdicts = await bench.of("a", "b", "c")
    assert [type(verdict) for verdict in verdicts] == [Matched, Unresolved, Matched]
    assert verdicts[1] == Unresolved(reason="the call failed: rejected: no")
    with pytest.raises(AuthError):
        await Bench([AuthError("refused")]).of("a", "b")


async def test_a_halt_keeps_what_was_judged() -> None:
    bench = Bench([scores(yes=0.9, no=0.1)], caps=Caps(calls=1))
    first, second = await bench.of("a", "b")
    assert isinstance(first, Matched)
    assert isinstance(second, Unresolved)
    assert second.reason.startswith("not asked: halted: the calls bound")
    with pytest.raises(Halted):
        await bench.of("c")


def test_it_says_what_it_is() -> None:
    info = Bench([]).judge.info
    assert (info.kind, info.name, info.window) == ("logprob", "log-probability scripted:scorer", 1)
    assert (info.deterministic, info.scoring, info.pools) == (True, True, False)
    assert info.identity != Bench([], floor=0.4).judge.info.identity


def test_what_cannot_be_read_is_refused_before_any_call() -> None:
    calls = Calls(allowance=CapsAllowance(Caps(), SystemClock()), emit=lambda _: None)
    with pytest.raises(ConfigError, match="reports no log-probabilities"):
        LogprobJudge(calls, ScriptedModel(), Criterion(question=FIRE), node=NodeId("root"))
    many = OneOf(text="?", labels=tuple(f"label {n}" for n in range(21)))
    with pytest.raises(ValidationError, match="21 labels are more"):
        Bench([], question=many)
    with pytest.raises(ValidationError, match=r"floor=1\.5"):
        Bench([], floor=1.5)


async def test_what_a_judge_will_ask_is_known_before() -> None:
    bench = Bench(lambda _: scores(yes=0.9, no=0.1))
    items = tuple(Part(ordinal=n, id=f"r{n}", text=f"text {n}") for n in range(3))
    shown = Window(index=0, pass_index=0, items=items)
    asked = [ask.request for ask in bench.judge.asks(shown)]
    assert bench.model.calls == 0
    await bench.judge.judge(shown)
    assert list(bench.model.requests) == asked


async def test_a_replay_that_misses_is_no_verdict() -> None:
    class Recorded(NoJournal):
        def find(self, key: ContentKey) -> Filed:
            if not answers:
                raise ReplayMiss(key=key, where="a run")
            return Filed(reply=answers.pop(), usd=None)

    answers = [scores(yes=0.9, no=0.1)]
    bench = Bench([])
    bench.judge._calls.journal = Recorded()
    with pytest.raises(ReplayMiss):
        await bench.of("a fire", "calm")
