"""What people are asked, what their answers do, and that whatever is no clear yes is a no."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal

import anyio
import pytest

from executors.errors import Halted
from executors.gate.allowance import Estimate
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.gate import Gate
from executors.gate.people.human import (
    Approve,
    Human,
    HumanEvent,
    Refuse,
    Terminate,
    TopUp,
    plain_reply,
)
from executors.replies import JsonValue

pytestmark = pytest.mark.anyio

ASKS: dict[str, object] = {"content": {"ask_patterns": ["delete"]}}
SPENT: dict[str, object] = {"budget": {"max_cost_usd": 0}}
TURNED: dict[str, object] = {"limits": {"max_turns": 0}}
DELETE = {"type": "fetch", "url": "https://example.com/", "note": "delete it"}
LOOK = {"type": "look"}
CALL = Estimate(tokens=10, usd=Decimal("0.9"))


def saying(*said: object) -> tuple[Human, list[HumanEvent]]:
    """Return a person who gives these answers, the last of them again and again, and what they hear."""
    heard: list[HumanEvent] = []

    async def human(event: HumanEvent) -> object:
        heard.append(event)
        await anyio.lowlevel.checkpoint()  # as people do, while others come to ask
        return said[min(len(heard), len(said)) - 1]

    return human, heard


def lines(gate: Gate, phase: str) -> list[Mapping[str, JsonValue]]:
    return [line for line in gate.audit.entries if line["phase"] == phase]


class Cursed(Mapping[str, object]):
    def __getitem__(self, name: str) -> object:
        raise ValueError(name)

    def __iter__(self) -> Iterator[str]:
        raise ValueError

    def __len__(self) -> int:
        return 1


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("allow", Approve()),
        ("deny", Refuse()),
        ("terminate", Terminate()),
        (Approve(), Approve()),
        (TopUp(cap=3), TopUp(cap=3)),
        ({"decision": "allow"}, Approve()),
        ({"decision": "deny", "reason": "not today"}, Refuse(reason="not today")),
        ({"decision": "topup", "newCap": 10}, TopUp(cap=10)),
        ({"decision": "topup", "new_cap": 10}, TopUp(cap=10)),
        ({"decision": "topup"}, TopUp(cap=None)),
        ({"decision": "terminate", "reason": "enough"}, Terminate(reason="enough")),
    ],
)
def test_answers_have_these_forms(said: object, reply: object) -> None:
    assert plain_reply(said) == reply


@pytest.mark.case("G-034")
@pytest.mark.parametrize(
    "said", [None, "yes", "ALLOW", "ok", True, 1, {}, {"decision": True}, [], Approve, object()]
)
def test_whatever_is_no_clear_answer_is_a_no(said: object) -> None:
    assert isinstance(plain_reply(said), Refuse)


# ---------------------------------------------------------------- what they do


COST, TURNS = "budget.maxCostUsd", "limits.maxTurns"
ASK, PASSED = "content.askPatterns", "humanChannel.allow"
NAN, INFINITE = float("nan"), float("inf")
BAD = "invalid newCap"
# Case, configuration, answer; what is decided, by which rule, and a word of its reason.
ROWS: list[tuple[str, dict[str, object], object, type[Settled], str, str]] = [
    ("G-005", ASKS, "deny", Deny, ASK, "did not allow"),
    ("G-006", ASKS, "allow", Allow, PASSED, ""),
    ("G-023", ASKS, {"decision": "deny", "reason": "not now"}, Deny, ASK, "not now"),
    ("G-024", SPENT, "deny", Halt, COST, ""),
    ("G-024", TURNED, "deny", Halt, TURNS, ""),
    ("G-025", SPENT, "allow", Allow, PASSED, ""),
    ("G-025", TURNED, "allow", Allow, PASSED, ""),
    ("G-026", SPENT, TopUp(cap=10), Allow, "default", ""),
    ("G-028", SPENT, TopUp(cap=NAN), Halt, COST, BAD),
    ("G-028", SPENT, TopUp(cap=INFINITE), Halt, COST, BAD),
    ("G-028", SPENT, TopUp(cap=-1), Halt, COST, BAD),
    ("G-028", SPENT, {"decision": "topup"}, Halt, COST, BAD),
    ("G-028", SPENT, {"decision": "topup", "newCap": "10"}, Halt, COST, BAD),
    ("G-028", SPENT, {"decision": "topup", "newCap": True}, Halt, COST, BAD),
    ("G-029", TURNED, TopUp(cap=10), Halt, TURNS, "not applicable"),
    ("G-030", ASKS, TopUp(cap=10), Allow, PASSED, ""),
    ("G-031", SPENT, "terminate", Halt, "gate.terminated", ""),
    ("G-034", SPENT, None, Halt, COST, "no answer that the gate knows"),
    ("G-034", ASKS, Cursed(), Deny, ASK, "could not be read"),
]


@pytest.mark.parametrize("row", [pytest.param(row, marks=pytest.mark.case(row[0])) for row in ROWS])
async def test_an_answer_does_what_it_says(
    row: tuple[str, dict[str, object], object, type[Settled], str, str],
) -> None:
    _, config, said, kind, rule, words = row
    human, heard = saying(said)
    gate = Gate(config, human=human)
    got = await gate.check(DELETE)
    assert (type(got), got.rule) == (kind, rule)
    assert words in got.reason
    assert len(heard) == 1
    told = [line["phase"] for line in gate.audit.entries]
    assert told[0] == told[-1] == "gate"
    assert "approval" in told
    assert ("halt" in told) is (config is not ASKS)


@pytest.mark.case("G-031")
async def test_the_end_of_a_run_is_written_down() -> None:
    gate = Gate(SPENT, human=saying(Terminate(reason="enough"))[0])
    await gate.check(LOOK)
    assert [line["reason"] for line in lines(gate, "terminate")] == ["enough"]


@pytest.mark.case("G-026")
async def test_a_top_up_is_told_with_the_caps_before_and_after_and_stays() -> None:
    human, heard = saying(TopUp(cap=10))
    gate = Gate(SPENT, human=human)
    for _ in range(2):
        assert isinstance(await gate.check(LOOK), Allow)
    (line,) = lines(gate, "topup")
    assert (line["dimension"], line["old_cap"], line["new_cap"]) == (COST, "0", "10")
    assert len(heard) == 1


@pytest.mark.case("G-028")
async def test_an_invalid_cap_changes_nothing() -> None:
    gate = Gate(SPENT, human=saying(TopUp(cap=-1))[0])
    await gate.check(LOOK)
    assert gate.context().max_usd == 0


async def test_caps_are_raised_five_times_a_check_at_most() -> None:
    """Somebody who raises a cap by too little again and again is asked a bounded number of times."""
    human, heard = saying(TopUp(cap=0))
    got = await Gate(SPENT, human=human).check(LOOK)
    assert isinstance(got, Halt)
    assert len(heard) == 6
    assert "raised 5 times" in got.reason


@pytest.mark.case("G-025")
async def test_a_bound_is_passed_once_and_the_exemption_is_what_the_action_took() -> None:
    human, heard = saying("allow")
    gate = Gate({"budget": {"max_cost_usd": "0.5"}}, human=human)
    gate.record(LOOK, {"cost_usd": 0.5})
    got = await gate.check({"type": "llm"}, estimate=CALL)
    assert got == Allow(rule=PASSED, reason="a person allowed it", aid=got.aid)
    (line,) = lines(gate, "exempt")
    assert (line["usd"], line["tokens"]) == ("0.9", 10)
    gate.record({"type": "llm"}, {"cost_usd": 0.7, "tokens": 9}, aid=got.aid)
    assert (gate.context().usd, gate.context().max_usd) == (Decimal("1.2"), Decimal("1.2"))
    await gate.check(LOOK)
    assert len(heard) == 2


async def test_what_a_person_lets_pass_a_bound_still_meets_the_rules() -> None:
    gate = Gate(SPENT | {"content": {"deny_patterns": ["DROP"]}}, human=saying("allow")[0])
    got = await gate.check({"type": "x", "q": "DROP it"})
    assert isinstance(got, Deny)


async def test_a_person_is_asked_for_the_bound_and_again_for_the_action() -> None:
    human, heard = saying("allow")
    got = await Gate(SPENT | ASKS, human=human).check(DELETE)
    assert isinstance(got, Allow)
    assert [event.kind for event in heard] == ["halt", "ask"]


# ---------------------------------------------------------------- nobody there, or no answer


@pytest.mark.case("G-021")
@pytest.mark.parametrize(("config", "kind"), [(SPENT, Halt), (ASKS, Deny)])
async def test_where_nobody_is_attached_the_answer_is_no_at_once_with_one_warning(
    config: dict[str, object], kind: type[Settled]
) -> None:
    gate = Gate(config)
    for _ in range(3):
        got = await gate.check(DELETE)
        assert isinstance(got, kind)
        assert "no channel" in got.reason
    assert len(gate.warnings) == 1


def raising(error: BaseException) -> Callable[[HumanEvent], object]:
    def human(event: HumanEvent) -> object:
        raise error

    return human


@pytest.mark.case("G-033")
@pytest.mark.parametrize(
    "error", [ValueError("gone"), SystemExit(1), Halted(bound="mine", scope="run", limit="1")]
)
async def test_a_channel_that_raises_denies_and_the_log_says_why(error: BaseException) -> None:
    gate = Gate(SPENT, human=raising(error))
    got = await gate.check(LOOK)
    assert (type(got), got.rule) == (Halt, COST)
    (line,) = lines(gate, "approval")
    assert line["decision"] == "deny"
    assert type(error).__name__ in str(line["reason"])


async def silent(event: HumanEvent) -> object:
    await anyio.sleep_forever()
    return "allow"


async def late(event: HumanEvent) -> object:
    with suppress(anyio.get_cancelled_exc_class()):
        await anyio.sleep_forever()
    return "allow"


@pytest.mark.case("G-035", "G-036")
@pytest.mark.parametrize("human", [silent, late])
async def test_silence_denies_in_time_and_a_late_yes_is_ignored(
    human: Callable[[HumanEvent], Awaitable[object]],
) -> None:
    gate = Gate(SPENT | {"human": {"timeout_seconds": 0.05}}, human=human)
    with anyio.fail_after(5):
        got = await gate.check(LOOK)
    assert (type(got), got.rule) == (Halt, COST)
    (line,) = lines(gate, "approval")
    assert "within 0.05 s" in str(line["reason"])


@pytest.mark.case("G-036")
def test_silence_denies_in_time_where_nothing_else_runs() -> None:
    gate = Gate(SPENT | {"human": {"timeout_seconds": 0.05}}, human=silent)
    assert isinstance(anyio.run(gate.check, LOOK), Halt)


async def test_a_plain_channel_that_hangs_is_left_behind() -> None:
    free = threading.Event()

    def hangs(event: HumanEvent) -> str:
        free.wait(5)
        return "allow"

    gate = Gate(SPENT | {"human": {"timeout_seconds": 0.05}}, human=hangs)
    assert isinstance(await gate.check(LOOK), Halt)
    free.set()


async def test_a_plain_channel_may_take_its_time_beside_the_loop() -> None:
    gate = Gate(SPENT, human=lambda event: "allow")
    assert isinstance(await gate.check(LOOK), Allow)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "5"])
def test_waiting_for_a_person_is_bounded(seconds: object) -> None:
    with pytest.raises(Exception, match="timeout_seconds"):
        Gate({"human": {"timeout_seconds": seconds}})


# ---------------------------------------------------------------- the event


@pytest.mark.case("G-038")
async def test_the_event_holds_the_checked_action_and_the_halt_line_none() -> None:
    human, heard = saying("deny")
    gate = Gate(SPENT, human=human)
    got = await gate.check({"type": "look", "at": "it", "_ctx": {"user": 42}})
    (event,) = heard
    assert (event.kind, event.severity, event.rule, event.aid) == ("halt", "halt", COST, got.aid)
    assert event.action.fields["at"] == "it"
    assert event.action.context == {"user": 42}
    (line,) = lines(gate, "halt")
    assert line["action"] is None
    assert line["dimension"] == COST


async def test_the_event_says_where_the_run_stands() -> None:
    human, heard = saying("deny")
    gate = Gate({"budget": {"max_cost_usd": 1}, "limits": {"max_turns": 9}}, human=human)
    for cost in (0.1, 0.3, 0.6):
        gate.record({"type": "llm"}, {"cost_usd": cost, "tokens": 5})
    await gate.check(LOOK)
    at = heard[0].standing
    assert (at.usd, at.max_usd) == (Decimal(1), Decimal(1))
    assert (at.tokens, at.turns, at.max_turns) == (15, 3, 9)
    assert at.usd_each == at.usd_lately == Decimal(1) / 3


async def test_what_a_person_sees_holds_no_secret_and_moves_no_cursor() -> None:
    human, heard = saying("deny")
    gate = Gate(ASKS, human=human)
    await gate.check(DELETE | {"api_key": "sk-" + "canary" * 4, "note": "delete\x1b[2J\u202e"})
    shown = heard[0].shown
    assert "canary" not in shown
    assert shown.isprintable()


# ---------------------------------------------------------------- several at once


async def test_people_hear_one_question_at_a_time() -> None:
    open_ = most = 0

    async def human(event: HumanEvent) -> object:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        open_ -= 1
        return "allow"

    gate = Gate(ASKS, human=human)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(gate.check, DELETE)
    assert most == 1


async def test_one_top_up_does_for_all_who_wait() -> None:
    human, heard = saying(TopUp(cap=10))
    gate, got = Gate(SPENT, human=human), list[Settled]()

    async def check() -> None:
        got.append(await gate.check(LOOK))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(check)
    assert [type(one) for one in got] == [Allow] * 8
    assert len(heard) == 1


async def test_the_end_of_a_run_is_final_for_those_who_wait_as_well() -> None:
    human, heard = saying(Terminate(), Approve())
    gate, got = Gate(ASKS, human=human), list[Settled]()

    async def check() -> None:
        got.append(await gate.check(DELETE))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(check)
    assert {one.rule for one in got} == {"gate.terminated"}
    assert len(heard) == 1


async def test_an_absent_person_holds_nobody_up_one_after_another() -> None:
    asked: list[HumanEvent] = []

    async def absent(event: HumanEvent) -> object:
        asked.append(event)
        await anyio.sleep_forever()
        return "allow"

    gate = Gate(ASKS | {"human": {"timeout_seconds": 0.05}}, human=absent)
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(gate.check, DELETE)
    assert len(asked) == 1


@pytest.mark.parametrize("absent", [True, False])
async def test_a_no_to_a_bound_and_silence_hold_for_every_call_that_comes_to_it(
    absent: bool,
) -> None:
    asked: list[HumanEvent] = []

    async def human(event: HumanEvent) -> object:
        asked.append(event)
        await (anyio.sleep_forever() if absent else anyio.lowlevel.checkpoint())
        return "deny"

    gate = Gate(SPENT | {"human": {"timeout_seconds": 0.05}}, human=human)
    full, got = gate.allowance.reserve(CALL), list[str]()

    async def call() -> None:
        while await gate.allowance.appeal(full.halted, CALL):  # type: ignore[union-attr]
            await anyio.lowlevel.checkpoint()
        got.append(COST)

    async def check() -> None:
        got.append((await gate.check(LOOK)).rule)

    async with anyio.create_task_group() as group:
        for _ in range(24):
            group.start_soon(call)
            group.start_soon(check)
    assert got == [COST] * 48
    assert len(asked) == 1


async def test_another_bound_is_another_question() -> None:
    human, heard = saying("deny")
    gate = Gate(SPENT, human=human)
    for cap in (0, 0, Decimal("0.1"), Decimal("0.1")):
        gate.raise_cap("usd", cap)
        assert isinstance(await gate.check(LOOK, estimate=CALL), Halt)
    assert len(heard) == 2


async def test_a_no_to_an_action_says_nothing_about_another() -> None:
    human, heard = saying("deny", "allow")
    gate = Gate(ASKS, human=human)
    assert isinstance(await gate.check(DELETE), Deny)
    assert isinstance(await gate.check(DELETE), Allow)
    assert len(heard) == 2


async def test_a_cancelled_question_does_not_wait_for_a_plain_channel() -> None:
    free, asked = threading.Event(), threading.Event()

    def hangs(event: HumanEvent) -> str:
        asked.set()
        free.wait(8)
        return "allow"

    gate, begun = Gate(ASKS, human=hangs), anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(gate.check, DELETE)
        await anyio.to_thread.run_sync(asked.wait)
        group.cancel_scope.cancel()
    free.set()
    assert anyio.current_time() - begun < 4


async def test_who_is_cancelled_while_a_person_thinks_holds_nothing() -> None:
    gate = Gate(ASKS, human=silent)
    with anyio.move_on_after(0.02):
        await gate.check(DELETE, estimate=CALL)
    assert isinstance(await gate.check(LOOK, estimate=CALL), Allow)
    assert gate.context().turns == 1


# ---------------------------------------------------------------- calls of models


async def test_a_call_that_finds_no_room_may_go_beyond_by_a_persons_word() -> None:
    human, heard = saying("allow", "deny")
    gate = Gate({"budget": {"max_cost_usd": "0.5"}}, human=human)
    full = gate.allowance.reserve(CALL)
    assert await gate.allowance.appeal(full.halted, CALL)  # type: ignore[union-attr]
    assert (heard[0].kind, heard[0].rule, heard[0].action.type) == ("halt", COST, "llm")
    held = gate.allowance.reserve(CALL)
    gate.allowance.settle(held, tokens=10, usd=Decimal("0.9"))  # type: ignore[arg-type]
    assert not await gate.allowance.appeal(full.halted, CALL)  # type: ignore[union-attr]
    assert len(lines(gate, "exempt")) == 1


async def test_nobody_is_asked_for_time_that_is_over() -> None:
    human, heard = saying("allow")
    gate = Gate({}, human=human)
    assert not await gate.allowance.appeal(gate.allowance.out_of_time(), CALL)
    assert heard == []
