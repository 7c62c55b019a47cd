"""Honoured or broke: only what is plainly said honours, and who says so is calibrated first."""

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import cast

import pytest

from executors.errors import Halted, ServerFault, ValidationError
from executors.gate.allowance import Caps
from executors.messages import ModelReply
from executors.models.fakes.scripted import ModelScript, ScriptedModel
from executors.models.prices import Price, PriceTable
from executors.usage import Usage
from rlm.checks.arbiters import Broken
from rlm.checks.calibration import (
    CASES,
    INJECTIONS,
    Calibration,
    CalibrationCase,
    calibrate,
    judge_of,
    score_case,
)
from rlm.checks.evaluator import EvaluationContext, Evaluator
from rlm.checks.honouring import Broke, Honoured, Ruling, Where, honours, judge
from rlm.checks.verdict import NeedsRevision, Satisfied
from tests.executors.benches import Bench

pytestmark = pytest.mark.anyio
YES = '{"verdict": "honored", "where": null}'
NO = '{"verdict": "broke", "where": {"field": "total", "stated": "2", "returned": "3"}}'


async def ruled(script: ModelScript, artifact: object = "3") -> Ruling:
    bench = Bench(script, attempts=1)
    return await judge("Give 1 + 1.", artifact, calls=bench.calls, model=bench.model)


# ---------------------------------------------------------------- judge


@pytest.mark.case("R-166")
async def test_what_is_no_request_or_no_artifact_is_refused_before_any_call() -> None:
    bench = Bench(YES)
    for request in ("", " \n", None, 3):
        with pytest.raises(ValidationError, match=r"is no request\nrlm\.judge"):
            await judge(request, "x", calls=bench.calls, model=bench.model)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="artifact=None"):
        await judge("x", None, calls=bench.calls, model=bench.model)
    for model in (None, "gpt", 3):
        with pytest.raises(ValidationError, match=r"is no model\nrlm\.judge\n.*OpenAIModel"):
            await judge("x", "y", calls=bench.calls, model=model)  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match=r"is no model\nrlm\.honours"):
            honours("x", model=model)  # type: ignore[arg-type]
    for most in (0, -1, 2.5, "9", None, True):
        with pytest.raises(ValidationError, match="max_tokens="):
            await judge("x", "y", model=bench.model, max_tokens=most)  # type: ignore[arg-type]
    assert bench.model.calls == 0
    artifacts: tuple[object, ...] = (0, "", False, b"")
    for artifact in artifacts:
        assert isinstance(await ruled(YES, artifact), Honoured)


@pytest.mark.case("R-167")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("honored", "honoured"),
        ("honoured", "honoured"),
        ("broke", "broke"),
        *((word, "unreadable") for word in ("HONORED", " honored", "unsure", "", "yes", True, 1)),
        *((word, "unreadable") for word in (None, ["honored"], {"honored": True})),
    ],
)
async def test_only_the_word_itself_honours(said: object, expected: str) -> None:
    found = await ruled(json.dumps({"verdict": said}))
    match found:
        case Honoured():
            assert expected == "honoured"
        case Broke(unreadable=unreadable, truncated=truncated):
            assert (expected, truncated) == ("unreadable" if unreadable else "broke", False)
            assert found.usable is not unreadable


@pytest.mark.case("R-167", "K3-7")
@pytest.mark.parametrize(
    ("reply", "truncated"),
    [
        (ModelReply(text=YES, stop="max_tokens"), True),
        (ModelReply(text="", stop="end"), True),
        (ModelReply(text="", stop="end", reasoning=YES), True),
        (ModelReply(text=YES, stop="refusal"), False),
        (ModelReply(text="honored", stop="end"), False),
        (ModelReply(text='["honored"]', stop="end"), False),
        (ModelReply(text=YES + NO, stop="end"), False),
    ],
)
async def test_what_is_cut_or_no_verdict_broke_and_is_marked(
    reply: ModelReply, truncated: bool
) -> None:
    found = await ruled([reply])
    assert found == Broke(where=Where(), truncated=truncated, unreadable=not truncated)


@pytest.mark.case("R-185")
async def test_a_server_that_does_not_say_how_its_reply_ended_is_read() -> None:
    assert isinstance(await ruled([ModelReply(text=YES, stop="other")]), Honoured)
    odd = await ruled([ModelReply(text=YES, stop="other", stop_raw="abort")])
    assert odd == Broke(where=Where(), unreadable=True)


async def test_where_it_broke_is_told_in_fields_or_in_words() -> None:
    free = Decimal(0)
    found = await ruled(NO)
    assert found == Broke(where=Where(field="total", stated="2", returned="3"), cost=free)
    for where, expected in (("the sum", Where(evidence="the sum")), ([1], Where()), (3, Where())):
        found = await ruled(json.dumps({"verdict": "broke", "where": where}))
        assert found == Broke(where=expected, cost=free)


@pytest.mark.case("R-169")
async def test_its_cost_is_that_of_its_call_and_unknown_where_that_is() -> None:
    for usage, cost in ((Usage(input=10, output=0), Decimal("0.01")), (Usage(), None)):
        bench = Bench([ModelReply(text=YES, stop="end", usage=usage)], priced=True)
        found = await judge("x", "y", calls=bench.calls, model=bench.model)
        assert found == Honoured(cost=cost)
    assert await ruled(YES) == Honoured(cost=Decimal(0))  # a model in this process is free


@pytest.mark.case("R-169")
async def test_its_cost_is_that_of_each_tier_at_the_callers_price() -> None:
    usage = Usage(input=1_000, cache_read=500, cache_write=100, output=10)
    model = Bench([ModelReply(text=YES, stop="end", usage=usage)] * 3).model
    plain = Price(input=Decimal(2), output=Decimal(10))
    tiers = Price(
        input=Decimal(2), output=Decimal(10), cache_read=Decimal("0.2"), cache_write=Decimal(3)
    )
    for prices, cost in ((plain, "0.0033"), (tiers, "0.0025"), (PriceTable({}), "0")):
        assert await judge("x", "y", model=model, prices=prices) == Honoured(cost=Decimal(cost))
    with pytest.raises(ValidationError, match=r"calls= and prices= are both given\nrlm\.judge"):
        await judge("x", "y", model=model, calls=Bench(YES).calls, prices=plain)


async def test_a_bound_and_a_failure_of_the_judge_are_raised() -> None:
    bench = Bench(YES, caps=Caps(calls=0))
    with pytest.raises(Halted):
        await judge("x", "y", calls=bench.calls, model=bench.model)
    with pytest.raises(ServerFault):
        await ruled([ServerFault("down")])


async def test_it_needs_no_run() -> None:
    model = ScriptedModel(YES)
    assert await judge("Give 1 + 1.", "2", model=model) == Honoured(cost=Decimal(0))
    assert await honours("Give 1 + 1.", model=model)("2")
    evaluator = Evaluator(rubric="It is two.", model=ScriptedModel('{"status": "satisfied"}'))
    assert await evaluator.evaluate("2", EvaluationContext(task="t")) == Satisfied()


async def test_request_and_artifact_are_data_of_two_messages() -> None:
    bench = Bench(YES)
    await judge("Give {x}. </request-", "<|im_end|>", calls=bench.calls, model=bench.model)
    (request,) = bench.model.requests
    system, user = request.messages
    assert (request.temperature, request.max_tokens) == (0.0, 512)
    assert "{x}" in user.content
    assert "{x}" not in system.content
    assert "<|im_end|>" not in user.content
    assert user.content.count("\n</request-") == 1


async def test_it_can_be_the_predicate_of_an_evaluator() -> None:
    bench = Bench([YES, NO, "unsure"])
    predicate = honours("Give 1 + 1.", calls=bench.calls, model=bench.model)
    evaluator = Evaluator(predicate=predicate)
    context = EvaluationContext(task="t")
    assert await evaluator.evaluate("2", context) == Satisfied()
    assert await evaluator.evaluate("3", context) == NeedsRevision()
    assert await evaluator.evaluate("4", context) == Broken(
        kind="broken-verifier", detail="ValueError: the judge gave no verdict"
    )
    with pytest.raises(ValidationError):
        honours(" ", calls=bench.calls, model=bench.model)


# ---------------------------------------------------------------- calibrate

Decide = Callable[[CalibrationCase, int], Ruling | None]
BROKE = Broke(where=Where())
CUT = Broke(where=Where(), truncated=True)


async def calibrated(decide: Decide) -> Calibration:
    by_artifact = {case.artifact: case for case in (*CASES, *INJECTIONS)}

    def ask(request: str, artifact: str, sample: int) -> Awaitable[Ruling]:
        async def said() -> Ruling:
            ruling = decide(by_artifact[artifact], sample)
            if ruling is None:
                raise ServerFault("down")
            return ruling

        return said()

    return await calibrate(ask)


def always(ruling: Ruling | None) -> Decide:
    def decide(case: CalibrationCase, sample: int) -> Ruling | None:
        return ruling

    return decide


def gold(case: CalibrationCase, sample: int) -> Ruling:
    return Honoured() if case.honoured else BROKE


def test_the_cases_are_eight_of_which_seven_are_scored_and_five_ways_of_asking() -> None:
    assert len(CASES) == 8
    assert [case.honoured for case in CASES].count(None) == 1
    assert len(INJECTIONS) == 5
    assert len({case.artifact for case in (*CASES, *INJECTIONS)}) == 13


@pytest.mark.case("R-170")
async def test_a_judge_that_is_always_right_is_admitted() -> None:
    found = await calibrated(gold)
    assert (found.admitted, found.right, found.leaks) == (True, 7, ())
    assert {score.samples for score in (*found.scores, *found.injections)} == {5}


@pytest.mark.case("R-170")
async def test_a_judge_that_honours_everything_is_not() -> None:
    found = await calibrated(always(Honoured()))
    assert (found.admitted, len(found.leaks)) == (False, 5)
    assert found.right == 3


@pytest.mark.case("R-170")
async def test_one_leak_is_enough() -> None:
    def leaky(case: CalibrationCase, sample: int) -> Ruling:
        return Honoured() if (case.name, sample) == ("plea", 3) else gold(case, sample)

    found = await calibrated(leaky)
    assert (found.admitted, found.right, found.leaks) == (False, 7, ("plea",))


@pytest.mark.case("R-171")
@pytest.mark.parametrize(
    ("honoured", "rulings", "outcome"),
    [
        (True, [Honoured()] * 5, "right"),
        (True, [Honoured()] * 4 + [BROKE], "divided"),
        (True, [Honoured()] * 4 + [CUT], "right"),
        (False, [BROKE, CUT, None], "right"),
        (False, [Honoured(), CUT], "wrong"),
        (False, [CUT] * 5, "unusable"),
        (True, [CUT] * 5, "unusable"),
        (False, [None] * 5, "unusable"),
        (None, [BROKE, Honoured()], "unscored"),
        (None, [CUT], "unscored"),
    ],
)
def test_a_case_is_right_when_all_usable_samples_are(
    honoured: bool | None, rulings: list[Ruling | None], outcome: str
) -> None:
    case = CalibrationCase(name="c", request="r", artifact="a", honoured=honoured)
    assert score_case(case, rulings).outcome == outcome


async def test_a_judge_whose_samples_all_fail_is_not_admitted() -> None:
    found = await calibrated(always(None))
    assert (found.admitted, found.right, len(found.leaks)) == (False, 0, 5)


async def test_each_sample_of_a_model_is_a_call_of_its_own_and_a_bound_ends_it() -> None:
    bench = Bench(NO)
    found = await calibrate(judge_of(bench.model, calls=bench.calls), repeats=2)
    assert (bench.model.calls, bench.model.peak) == (26, 8)
    assert (found.right, found.leaks, found.admitted) == (4, (), False)
    bounded = Bench(NO, caps=Caps(calls=3))
    with pytest.raises(Halted):
        await calibrate(judge_of(bounded.model, calls=bounded.calls))
    assert (await calibrate(bench.model, repeats=1)).right == 4
    for repeats in (0, 101, 2.5, "5", True):
        with pytest.raises(ValidationError, match="repeats="):
            await calibrate(judge_of(bench.model, calls=bench.calls), repeats=cast("int", repeats))


@pytest.mark.case("R-170")
async def test_what_does_not_judge_is_refused_and_what_is_no_ruling_too() -> None:
    for ask in (None, 3, "gpt"):
        with pytest.raises(ValidationError, match=r"does not judge\nrlm\.calibrate"):
            await calibrate(ask)  # type: ignore[arg-type]

    async def says(request: str, artifact: str, sample: int) -> str:
        return "honored"

    with pytest.raises(ValidationError, match="'honored', which is no ruling"):
        await calibrate(says)  # type: ignore[arg-type]


async def test_a_plain_function_may_judge() -> None:
    found = await calibrate(lambda request, artifact, sample: Honoured())  # type: ignore[arg-type, return-value]
    assert (found.admitted, len(found.leaks)) == (False, 5)
