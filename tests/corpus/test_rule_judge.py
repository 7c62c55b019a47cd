"""The rule judge: code decides, and one bad record never ends the others."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corpus.events import JudgeNoted
from corpus.judges.base import Window
from corpus.judges.rule import Rule, RuleJudge
from corpus.questions import OneOf, Question, YesNo
from corpus.records import Part
from corpus.verdicts import Chosen, Matched, NotMatched, Unresolved, Unsure, Verdict
from executors.errors import Halted, ValidationError
from executors.events import Event
from executors.ids import NodeId

pytestmark = pytest.mark.anyio

FIRE = YesNo(text="Is it about fire?")
TOPIC = OneOf(text="Which topic?", labels=("Fire", "Flood"))


def window(*texts: str) -> Window:
    parts = tuple(Part(ordinal=n, id=f"r{n}", text=text) for n, text in enumerate(texts))
    return Window(index=3, pass_index=0, items=parts)


async def judged(
    rule: Rule, *texts: str, question: Question = FIRE, events: list[Event] | None = None
) -> list[Verdict]:
    judge = RuleJudge(
        rule,
        question=question,
        name="rule",
        node=NodeId("root.0"),
        emit=None if events is None else events.append,
    )
    return list(await judge.judge(window(*texts)))


WAYS: dict[str, Callable[[str], object]] = {
    "bool": lambda text: "fire" in text,
    "match": re.compile("fire").search,
    "none": lambda text: True if "fire" in text else None,
    "numpy": lambda text: np.bool_("fire" in text),
}


@pytest.mark.parametrize("rule", WAYS.values(), ids=WAYS)
async def test_a_rule_says_yes_or_no(rule: Callable[[str], object]) -> None:
    assert await judged(rule, "a fire", "calm") == [Matched(), NotMatched()]


@pytest.mark.case("K6-19")
async def test_a_record_on_which_the_rule_raises_is_unresolved_and_named() -> None:
    """The reason holds the error's type alone where its message holds the record's text."""

    def rule(text: str) -> bool:
        if text == "bad":
            raise ValueError(f"cannot judge {text!r}")
        return "fire" in text

    events: list[Event] = []
    verdicts = await judged(rule, "a fire", "bad", "calm", events=events)
    assert verdicts == [Matched(), Unresolved(reason="the rule raised ValueError"), NotMatched()]
    (noted,) = events
    assert isinstance(noted, JudgeNoted)
    assert (noted.window, noted.items, noted.missing) == (3, ("r1",), 1)
    assert noted.node == "root.0"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            TypeError("takes 0 positional arguments\nbut 1"),
            "TypeError: takes 0 positional arguments",
        ),
        (KeyError("column"), "KeyError: 'column'"),
        (KeyError("cell"), "KeyError"),
        (ValueError("no number: 'cell'"), "ValueError"),
        (ValueError(), "ValueError"),
    ],
)
async def test_a_reason_says_what_the_rule_raised_but_nothing_of_the_text(
    error: Exception, reason: str
) -> None:
    def rule(_: str) -> bool:
        raise error

    (verdict,) = await judged(rule, "some cell of a record")
    assert verdict == Unresolved(reason=f"the rule raised {reason}")


async def test_a_rule_that_raises_on_each_of_the_first_20_records_is_broken() -> None:
    def rule() -> bool:
        return True

    texts = [f"text {n}" for n in range(20)]
    assert len(await judged(rule, *texts[:19])) == 19  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match=r"TypeError: .*takes 0 positional .* first 20 rec"):
        await judged(rule, *texts)  # type: ignore[arg-type]


async def test_a_rule_that_worked_once_goes_on_whatever_it_raises_on() -> None:
    verdicts = await judged(lambda text: 1 / len(text) < 0.5, "a fire", *[""] * 40)
    assert sum(isinstance(verdict, Unresolved) for verdict in verdicts) == 40


async def test_an_object_whose_call_is_asynchronous_is_refused() -> None:
    class Later:
        async def __call__(self, text: str) -> bool:
            return bool(text)

    with pytest.raises(ValidationError, match="is asynchronous"):
        await judged(Later(), "text")


async def test_a_rule_without_faults_emits_nothing() -> None:
    events: list[Event] = []
    await judged(lambda _: True, "a", "b", events=events)
    assert events == []


@pytest.mark.case("K11-1")
@pytest.mark.parametrize("said", ["no", "", 0, 1, [], object()])
async def test_what_is_no_answer_is_not_read_by_its_truth(said: object) -> None:
    (verdict,) = await judged(lambda _: said, "text")
    assert isinstance(verdict, Unresolved)
    assert verdict.reason == f"the rule returned {type(said).__name__}, which is no answer"


async def test_a_halt_passes_through() -> None:
    def rule(_: str) -> bool:
        raise Halted(bound="calls", scope="run", limit="1")

    with pytest.raises(Halted):
        await judged(rule, "text")


async def test_an_asynchronous_rule_is_refused_or_unresolved_but_never_a_yes() -> None:
    async def rule(_: str) -> bool:
        return True

    with pytest.raises(ValidationError, match="is asynchronous"):
        await judged(rule, "text")
    (verdict,) = await judged(lambda text: rule(text), "text")  # noqa: PLW0108 - hides the coroutine
    assert verdict == Unresolved(reason="the rule returned coroutine, which is no answer")


# ---------------------------------------------------------------- labels

LABELS: dict[str, Callable[[str], object]] = {
    "fire": lambda text: "fire" in text,
    "flood ": re.compile("flood").search,
}


async def test_one_rule_a_label_chooses_when_exactly_one_fits() -> None:
    verdicts = await judged(LABELS, "a fire", "a flood", "calm", "fire, flood", question=TOPIC)
    assert verdicts == [
        Chosen(label="Fire"),
        Chosen(label="Flood"),
        Unsure(reason="the rule fits no label"),
        Unsure(reason="the rule fits several labels: Fire, Flood"),
    ]


async def test_a_rule_may_return_the_label() -> None:
    said: dict[str, Any] = {"a": "Fire", "b": " flood", "c": None, "d": "quake", "e": 7}
    verdicts = await judged(said.__getitem__, *said, question=TOPIC)
    assert verdicts == [
        Chosen(label="Fire"),
        Chosen(label="Flood"),
        Unsure(reason="the rule fits no label"),
        Unresolved(reason="the rule returned a label that the question does not have"),
        Unresolved(reason="the rule returned int, which is no answer"),
    ]


async def test_a_rule_of_a_label_that_returns_no_answer_leaves_the_record_unresolved() -> None:
    rules: dict[str, Callable[[str], object]] = {**LABELS, "fire": lambda _: "yes"}
    (verdict,) = await judged(rules, "text", question=TOPIC)
    assert verdict == Unresolved(reason="the rule returned str, which is no answer")


@pytest.mark.parametrize(
    ("rules", "question", "message"),
    [
        ({"fire": bool}, TOPIC, "rules for \\['fire'\\]"),
        ({"fire": bool, "flood": bool, "quake": bool}, TOPIC, "and a question for"),
        (LABELS, FIRE, "and a yes/no question"),
    ],
)
def test_rules_have_to_be_those_of_the_question(
    rules: Rule, question: Question, message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        RuleJudge(rules, question=question, name="rule")


def test_it_says_what_it_is() -> None:
    """Free and the same each time, so it runs once; it reads records whole, a thousand at a time."""
    info = RuleJudge(bool, question=FIRE, name="rule one").info
    assert (info.kind, info.name, info.window) == ("rule", "rule one", 1_000)
    assert (info.deterministic, info.pools, info.scoring) == (True, True, False)
    assert info.identity != RuleJudge(bool, question=FIRE, name="rule two").info.identity
