"""What a policy and a person allow, and what happens too often in a row."""

from collections.abc import Awaitable, Callable
from itertools import count

import anyio
import pytest

from executors.gate.decisions import Allow, Ask, Decision, Deny, Halt
from executors.ids import NodeId
from executors.loop import Ended, Guards, Question, ToolRequest, decide
from executors.messages import ModelReply, ModelRequest
from executors.models.fakes.scripted import Turn
from executors.tools.base import Arguments
from tests.executors.workers import Shop, a_tool, call, calls, is_sealed, raising, then_done

pytestmark = pytest.mark.anyio

REQUEST = ToolRequest(tool="look", arguments={}, context={}, node=NodeId("root"), depth=0)


# ---------------------------------------------------------------- the policy


def deciding(answer: object) -> Callable[[ToolRequest], Decision]:
    """Return a policy that says the same to everything."""

    def policy(request: ToolRequest) -> Decision:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    return policy


@pytest.mark.case("R-176")
@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (Allow(), "look"),
        (Deny(rule="r", reason="not on Sundays"), "Denied: not on Sundays"),
        (Deny(rule="r", reason=""), "Denied: the tool 'look' is not allowed here"),
        (ValueError("secret words"), "Denied: policy error"),
        (None, "Denied: policy error"),
        (True, "Denied: policy error"),
        ("yes", "Denied: policy error"),
    ],
)
async def test_whatever_is_not_clearly_a_yes_denies(answer: object, read: str) -> None:
    """Ours answers with a decision: true and texts are none."""
    shop = Shop(then_done(calls("look")), a_tool(), policy=deciding(answer))
    await shop.work()
    assert shop.results() == [read]
    assert shop.warnings() == (["policy"] if read.endswith("policy error") else [])


async def test_an_asynchronous_policy_is_awaited() -> None:
    async def policy(request: ToolRequest) -> Decision:
        await anyio.lowlevel.checkpoint()
        return Deny(rule="r", reason=request.tool)

    shop = Shop(then_done(calls("look")), a_tool(), policy=policy)
    await shop.work()
    assert shop.results() == ["Denied: look"]


@pytest.mark.case("R-177", "R-130")
async def test_a_policy_sees_the_callers_context_and_the_place_and_never_a_model() -> None:
    seen: list[ToolRequest] = []

    def policy(request: ToolRequest) -> Decision:
        seen.append(request)
        return Allow()

    shop = Shop(
        then_done(calls(call("look", {"at": "sky"}))),
        a_tool(),
        policy=policy,
        context={"user": 42},
    )
    await shop.work()
    assert seen == [
        ToolRequest(
            tool="look", arguments={"at": "sky"}, context={"user": 42}, node=REQUEST.node, depth=0
        )
    ]


async def test_a_policy_cannot_change_what_it_allows() -> None:
    def policy(request: ToolRequest) -> Decision:
        given = request.arguments
        assert isinstance(given, dict)
        given["path"] = "/etc"
        return Allow()

    got: list[Arguments] = []
    tool = a_tool("read", lambda arguments, _: got.append(arguments))
    shop = Shop(then_done(calls(call("read", {"path": "a"}))), tool, policy=policy)
    await shop.work()
    assert got == [{"path": "a"}]


async def test_what_cannot_run_is_no_question_for_the_policy() -> None:
    shop = Shop(then_done(calls("gone")), a_tool(), policy=deciding(ValueError()))
    await shop.work()
    assert shop.warnings() == []


async def test_a_policy_that_halts_ends_the_work_and_nothing_runs() -> None:
    ran: list[int] = []
    tool = a_tool("look", lambda _, __: ran.append(1), parallel=True)
    policy = _second(Allow(), Halt(rule="budget", reason="1 USD"))
    shop = Shop([calls("look", "look")], tool, policy=policy)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, worked.detail, ran) == ("halted", "budget", [])
    assert shop.results() == ["[halted:budget]"] * 2


def _second(first: Decision, later: Decision) -> Callable[[ToolRequest], Decision]:
    asked = count()
    return lambda _: later if next(asked) else first


# ---------------------------------------------------------------- a person


def answering(answer: object) -> Callable[[Question], Awaitable[str]]:
    async def ask(question: Question) -> str:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    return ask


ASKS = deciding(Ask(rule="mail", question="Send it?"))


@pytest.mark.case("R-179")
@pytest.mark.parametrize("answer", ["yes", "y", "YES", " approve ", "Approved\n"])
async def test_a_clear_yes_of_a_person_allows(answer: str) -> None:
    assert await decide(ASKS, REQUEST, ask=answering(answer)) == Allow()


@pytest.mark.case("R-179")
@pytest.mark.parametrize("answer", ["no", "", "ok", "sure", "yes please", None, {"yes": 1}, True])
async def test_anything_else_of_a_person_denies(answer: object) -> None:
    decision = await decide(ASKS, REQUEST, ask=answering(answer))
    assert decision == Deny(rule="mail", reason="a person did not allow it")


@pytest.mark.case("R-179")
@pytest.mark.parametrize("fault", ["silent", "raises", "nobody"])
async def test_where_no_person_answers_it_is_denied_and_reported(fault: str) -> None:
    async def silent(question: Question) -> str:
        await anyio.sleep_forever()
        return "yes"

    ask = {"silent": silent, "raises": answering(OSError("no terminal")), "nobody": None}[fault]
    heard: list[str] = []
    decision = await decide(
        ASKS, REQUEST, ask=ask, patience=0.02, warn=lambda code, _: heard.append(code)
    )
    assert isinstance(decision, Deny)
    assert decision.rule == "mail"
    assert heard == ([] if fault == "nobody" else ["ask"])


async def test_a_policy_that_hangs_denies() -> None:
    async def hangs(request: ToolRequest) -> Decision:
        await anyio.sleep_forever()
        return Allow()

    decision = await decide(hangs, REQUEST, patience=0.02)
    assert decision == Deny(rule="policy", reason="policy error")


async def test_a_person_is_shown_what_is_to_run() -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> str:
        asked.append(question)
        return "yes"

    shop = Shop(then_done(calls(call("mail", {"to": "a"}))), a_tool("mail"), policy=ASKS, ask=ask)
    await shop.work()
    assert shop.results() == ["mail"]
    assert [(one.rule, one.question, one.request.arguments) for one in asked] == [
        ("mail", "Send it?", {"to": "a"})
    ]


# ---------------------------------------------------------------- streaks


def endlessly(*turns: ModelReply) -> Callable[[ModelRequest], Turn]:
    """Return a script that says these in turn, for ever."""
    number = count()
    return lambda _: turns[next(number) % len(turns)]


DENIES = deciding(Deny(rule="r", reason="no"))


@pytest.mark.case("R-181")
@pytest.mark.parametrize(
    ("guards", "rounds"),
    [
        (Guards(rounds=9), 3),
        (Guards(rounds=9, denials=5), 5),
        (Guards(rounds=9, denials=0), 9),
        (Guards(rounds=9, denials=float("inf")), 9),
    ],
)
async def test_denials_in_a_row_end_it(guards: Guards, rounds: int) -> None:
    script = endlessly(calls("look", text="so far"), calls("other"))
    shop = Shop(script, a_tool(), a_tool("other"), policy=DENIES, guards=guards)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert worked.reason == ("denied" if rounds < 9 else "rounds")
    assert (shop.model.calls, worked.text) == (rounds, "so far")
    assert is_sealed(worked.log.messages)


@pytest.mark.case("R-181")
async def test_a_call_that_is_allowed_begins_the_row_of_denials_anew() -> None:
    script = endlessly(calls("bad"), calls("bad"), calls("look"))
    shop = Shop(
        script,
        a_tool(),
        a_tool("bad"),
        policy=lambda r: Allow() if r.tool == "look" else Deny(rule="r", reason="no"),
        guards=Guards(rounds=12, identical_errors=0),
    )
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert worked.reason == "rounds"


@pytest.mark.case("R-181")
async def test_denials_within_one_round_end_it_and_the_rest_is_not_run() -> None:
    ran: list[int] = []
    shop = Shop(
        [calls("bad", "bad", "bad", "look")],
        a_tool("look", lambda _, __: ran.append(1)),
        a_tool("bad"),
        policy=lambda r: Allow() if r.tool == "look" else Deny(rule="r", reason="no"),
    )
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, worked.detail, ran) == ("denied", "bad: no", [])
    assert shop.results() == ["Denied: no"] * 3 + ["[denied:bad: no]"]


BAD = calls(call("bad", {"n": 1}))
OTHER = calls(call("bad", {"n": 2}))


@pytest.mark.case("R-182", "K10-1", "K10-2")
@pytest.mark.parametrize(
    ("turns", "stuck"),
    [
        ([BAD], True),
        ([calls("gone")], True),
        ([calls(call("bad", "5"))], True),
        ([BAD, OTHER], False),
        ([BAD, BAD, calls("look")], False),
        ([BAD, BAD, calls("gone")], False),
    ],
)
async def test_the_same_failing_call_in_a_row_is_stuck_and_nothing_else_is(
    turns: list[ModelReply], stuck: bool
) -> None:
    shop = Shop(
        endlessly(*turns), a_tool(), a_tool("bad", raising(OSError("x"))), guards=Guards(rounds=9)
    )
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert worked.reason == ("stuck" if stuck else "rounds")
    assert shop.model.calls == (3 if stuck else 9)
    if stuck:
        assert worked.detail == turns[0].calls[0].name


@pytest.mark.case("R-182")
@pytest.mark.parametrize("off", [0, float("inf")])
async def test_the_guard_against_identical_errors_can_be_turned_off(off: float) -> None:
    guards = Guards(rounds=6, identical_errors=off)
    worked = await Shop(endlessly(BAD), a_tool("bad", raising(OSError())), guards=guards).work()
    assert isinstance(worked, Ended)
    assert worked.reason == "rounds"


@pytest.mark.case("K10-5")
async def test_the_same_call_with_the_same_success_is_stuck_where_that_guard_is_on() -> None:
    """D2: off by default."""
    tool = a_tool("ls", lambda _, __: [])
    off = await Shop(endlessly(calls("ls")), tool, guards=Guards(rounds=9)).work()
    assert isinstance(off, Ended)
    assert off.reason == "rounds"
    shop = Shop(endlessly(calls("ls")), tool, guards=Guards(rounds=9, identical_calls=5))
    on = await shop.work()
    assert isinstance(on, Ended)
    assert (on.reason, on.detail, shop.model.calls) == ("stuck", "ls", 5)


async def test_a_call_whose_result_changes_makes_progress() -> None:
    number = count()
    tool = a_tool("poll", lambda _, __: next(number))
    guards = Guards(rounds=9, identical_calls=2)
    worked = await Shop(endlessly(calls("poll")), tool, guards=guards).work()
    assert isinstance(worked, Ended)
    assert worked.reason == "rounds"
