"""The gate as a whole: one way through it, one word at its end, and room that is never given twice."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from executors.clock import VirtualClock
from executors.errors import BudgetUnavailable, DiskFault, ValidationError
from executors.gate.allowance import Estimate
from executors.gate.course.executed import Executed
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.gate import Gate
from executors.gate.people.human import HumanEvent
from executors.gate.rules.order import Rules
from executors.replies import JsonValue

pytestmark = pytest.mark.anyio

CAPPED: dict[str, object] = {"budget": {"max_cost_usd": 1}}
LLM = {"type": "llm"}
LOOK = {"type": "look"}
DEAR = Estimate(tokens=10, usd=Decimal("0.9"))


def lines(gate: Gate, phase: str) -> list[Mapping[str, JsonValue]]:
    return [line for line in gate.audit.entries if line["phase"] == phase]


async def at_once(
    gate: Gate, times: int, action: object, estimate: Estimate | None = None
) -> list[Settled]:
    """Check an action so many times at once."""
    got: list[Settled] = []

    async def check() -> None:
        got.append(await gate.check(action, estimate=estimate))

    async with anyio.create_task_group() as group:
        for _ in range(times):
            group.start_soon(check)
    return got


class Provider:
    """A live object with a key, as somebody may leave it in a context."""

    def __init__(self) -> None:
        self.api_key = "sk-" + "canary" * 5

    def __repr__(self) -> str:
        return f"Provider({self.api_key})"


class Halfway(Mapping[str, object]):
    """A mapping of which some values cannot be read."""

    def __getitem__(self, name: str) -> object:
        if name == "note":
            raise RuntimeError("no note")
        return {"type": "bash", "cmd": "echo DROP TABLE users"}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(["type", "note", "cmd"])

    def __len__(self) -> int:
        return 3


# ---------------------------------------------------------------- words


@pytest.mark.case("G-009")
async def test_what_no_rule_is_about_is_allowed_by_default() -> None:
    got = await Gate({}).check(LOOK)
    assert got == Allow(rule="default", aid=got.aid)


@pytest.mark.case("G-015")
@pytest.mark.parametrize(
    "config", [{}, {"content": {"ask_patterns": ["look"]}}, {"budget": {"max_calls": 0}}]
)
async def test_a_check_ends_in_allow_or_deny_with_a_severity(config: dict[str, object]) -> None:
    got = await Gate(config).check(LOOK)
    assert isinstance(got, Allow | Deny | Halt)
    assert got.outcome in {"allow", "deny"}
    assert got.severity in {"action", "halt"}


@pytest.mark.case("G-016")
async def test_each_check_has_an_id_that_what_came_of_it_joins() -> None:
    gate = Gate({})
    aids = [(await gate.check(LOOK)).aid for _ in range(500)]
    assert len(set(aids)) == 500
    assert all(len(aid) == 8 and int(aid, 16) >= 0 for aid in aids)
    gate.record(LOOK, {}, aid=aids[7])
    assert [line["aid"] for line in lines(gate, "record")] == [aids[7]]


@pytest.mark.case("G-018")
async def test_an_action_that_cannot_be_read_in_part_is_judged_by_the_rest() -> None:
    got = await Gate({"content": {"deny_patterns": ["DROP TABLE"]}}).check(Halfway())
    assert (type(got), got.rule) == (Deny, "content.denyPatterns")


@pytest.mark.parametrize(
    "action",
    [None, 7, "look", b"look", [], {}, {"type": None}, {"type": 3}, {1: 2}, object(), type],
)
async def test_whatever_comes_is_decided_about(action: object) -> None:
    gate = Gate({})
    assert isinstance(await gate.check(action), Allow | Deny)
    gate.record(action, action)
    assert isinstance(gate.allows(action), bool)


# ---------------------------------------------------------------- allows


@pytest.mark.case("G-039")
async def test_nothing_is_allowed_under_a_halt() -> None:
    gate = Gate({})
    assert gate.allows(LOOK)
    gate.terminate("done")
    assert not gate.allows(LOOK)
    assert not Gate({"budget": {"max_cost_usd": 0}}).allows(LOOK)


@pytest.mark.case("G-040")
async def test_what_a_person_could_allow_is_allowed_and_nobody_is_asked() -> None:
    heard: list[HumanEvent] = []
    gate = Gate({"content": {"ask_patterns": ["look"]}}, human=heard.append)
    assert gate.allows(LOOK)
    assert (heard, list(gate.audit.entries)) == ([], [])


@pytest.mark.case("G-041")
async def test_a_name_stands_for_an_action_of_that_type() -> None:
    gate = Gate({"tools": {"denylist": ["danger*"]}})
    assert gate.allows("look") is gate.allows({"type": "look"}) is True
    assert gate.allows("dangerous") is gate.allows({"type": "dangerous"}) is False


# ---------------------------------------------------------------- room


@pytest.mark.case("G-073", "K8-10")
async def test_of_many_who_ask_at_once_one_fits_under_the_cap() -> None:
    got = await at_once(Gate(CAPPED), 64, LLM, estimate=DEAR)
    assert [type(one) for one in got].count(Allow) == 1
    assert {one.rule for one in got} == {"default", "budget.maxCostUsd"}


@pytest.mark.case("G-074", "K8-13")
@pytest.mark.parametrize("used", [None, {"cost_usd": 0.05, "tokens": 3}])
async def test_what_was_set_aside_is_given_back_once_or_settled_as_it_was(used: object) -> None:
    gate = Gate(CAPPED)
    got = await gate.check(LLM, estimate=DEAR)
    if used is not None:
        gate.record(LLM, used, aid=got.aid)
    for _ in range(2):
        gate.release(got.aid)
    assert gate.context().usd == (0 if used is None else Decimal("0.05"))
    got = await gate.check(LLM, estimate=DEAR)
    assert isinstance(got, Allow)
    assert isinstance(await gate.check(LLM, estimate=DEAR), Halt)


@pytest.mark.case("G-074")
async def test_a_call_that_fails_or_is_cancelled_is_charged_as_estimated() -> None:
    """Nobody knows what it took: the worst case is what a server may bill."""

    async def fails() -> None:
        raise ValueError("broken")

    for execute in (fails, anyio.sleep_forever):
        gate = Gate(CAPPED)
        with anyio.move_on_after(0.02), suppress(ValueError):
            await gate.run(LLM, execute, estimate=DEAR)
        assert gate.context().usd == Decimal("0.9")
        assert isinstance(await gate.check(LLM, estimate=DEAR), Halt)


@pytest.mark.case("G-075")
async def test_calls_whose_price_nobody_knows_go_one_at_a_time_or_not_at_all() -> None:
    unknown = Estimate(tokens=10, usd=None)
    got = await at_once(Gate(CAPPED), 8, LLM, estimate=unknown)
    assert [type(one) for one in got].count(Allow) == 1
    closed = Gate({"budget": {"max_cost_usd": 1, "fail_closed_on_unpriced": True}})
    got = await at_once(closed, 8, LLM, estimate=unknown)
    assert {(type(one), one.rule) for one in got} == {(Halt, "budget.unpriced")}


@pytest.mark.case("G-076")
async def test_the_tighter_of_two_caps_holds_until_a_person_says_otherwise(tmp_path: Path) -> None:
    wide, tight = {"budget": {"max_cost_usd": 100}}, {"budget": {"max_cost_usd": 5}}
    first, second = Gate(wide, directory=tmp_path), Gate(tight, directory=tmp_path)
    assert second.context().max_usd == 5
    first.raise_cap("budget.maxCostUsd", 50)
    assert second.context().max_usd == 50
    first.close()
    second.close()


@pytest.mark.case("G-080", "G-095")
@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"limits": {"max_children": 1}}, "limits.maxChildren"),
        ({"spawn": {"rate_per_minute": 1}}, "spawn.ratePerMinute"),
    ],
)
async def test_of_many_children_at_once_as_many_are_admitted_as_may(
    config: dict[str, object], rule: str
) -> None:
    got = await at_once(Gate(config), 8, {"type": "spawn"})
    assert sorted(one.rule for one in got) == sorted(["default", *[rule] * 7])
    assert {type(one) for one in got} == {Allow, Deny}


@pytest.mark.case("G-083", "G-085", "G-086")
async def test_rates_open_again_after_a_minute_however_often_was_tried() -> None:
    clock = VirtualClock()
    gate = Gate({"defer": {"rate_per_minute": 2}}, clock=clock)
    for number in range(9):
        assert (await gate.check({"type": "defer"})).outcome == ("allow" if number < 2 else "deny")
        clock.advance(5)
    clock.advance(61 - 45)
    assert isinstance(await gate.check({"type": "defer"}), Allow)


@pytest.mark.case("G-078")
async def test_calls_of_models_are_no_rounds_of_tools() -> None:
    gate = Gate({"limits": {"max_tool_rounds": 2}})
    for _ in range(9):
        assert isinstance(await gate.check(LLM), Allow)
    for _ in range(2):
        assert isinstance(await gate.check(LOOK), Allow)
    got = await gate.check(LOOK)
    assert (type(got), got.rule) == (Halt, "limits.maxToolRounds")


async def test_what_is_not_allowed_is_not_counted() -> None:
    gate = Gate({"tools": {"denylist": ["look"]}})
    for _ in range(5):
        await gate.check(LOOK)
    assert gate.context().turns == 0


async def test_a_record_without_a_check_counts_and_is_charged() -> None:
    gate = Gate(CAPPED)
    gate.record(LLM, {"cost_usd": "1", "tokens": 9})
    gate.record(LOOK, {"cost_usd": 0.6, "counts": {"writes": 2}})
    at = gate.context()
    assert (at.usd, at.tokens, at.turns) == (Decimal("0.6"), 9, 2)
    assert len(lines(gate, "unpriced")) == 1


# ---------------------------------------------------------------- run


async def test_what_is_allowed_happens_and_what_it_took_is_recorded() -> None:
    gate = Gate(CAPPED)

    async def execute() -> str:
        return "done"

    got = await gate.run(
        LOOK, execute, report=lambda value: {"cost_usd": 0.25, "tokens": len(value)}
    )
    assert isinstance(got, Executed)
    assert got.value == "done"
    assert (gate.context().usd, gate.context().tokens) == (Decimal("0.25"), 4)


async def test_what_is_denied_does_not_happen() -> None:
    happened: list[int] = []

    async def execute() -> None:
        happened.append(1)

    got = await Gate({"tools": {"denylist": ["look"]}}).run(LOOK, execute)
    assert (type(got), happened) == (Deny, [])


@pytest.mark.case("G-213")
async def test_a_tool_that_raised_is_recorded_with_its_error_and_costs_nothing() -> None:
    gate = Gate(CAPPED)

    async def execute() -> None:
        raise ValueError("no such file")

    with pytest.raises(ValueError, match="no such file"):
        await gate.run(LOOK, execute)
    (line,) = lines(gate, "record")
    assert isinstance(line["result"], dict)
    assert line["result"]["error"] == "ValueError: no such file"
    assert gate.context().usd == 0


# ---------------------------------------------------------------- the end, caps


async def test_the_end_is_final_and_nobody_is_asked() -> None:
    heard: list[HumanEvent] = []

    async def human(event: HumanEvent) -> str:
        heard.append(event)
        return "allow"

    gate = Gate({}, human=human)
    gate.terminate("enough")
    for _ in range(3):
        got = await gate.check(LOOK)
        assert (type(got), got.rule) == (Halt, "gate.terminated")
        assert "enough" in got.reason
    assert heard == []
    assert len(lines(gate, "terminate")) == 1


def test_a_cap_is_set_by_hand_for_bounds_of_the_budget_alone() -> None:
    gate = Gate(CAPPED)
    gate.raise_cap("usd", 0.5)
    assert gate.context().max_usd == Decimal("0.5")
    for dimension, cap in (("limits.maxTurns", 5), ("usd", float("nan")), ("usd", -1)):
        with pytest.raises(ValidationError):
            gate.raise_cap(dimension, cap)
    assert gate.context().max_usd == Decimal("0.5")


async def test_the_default_gate_has_finite_bounds() -> None:
    gate = Gate.default()
    at = gate.context()
    assert at.max_usd == Decimal(10)
    assert (at.max_tokens, at.max_turns) == (200_000_000, 1_000_000)
    assert isinstance(await gate.check({"type": "bash", "cmd": "rm -rf /etc"}), Deny)
    assert isinstance(await gate.check(LOOK), Allow)


# ---------------------------------------------------------------- books that cannot be kept


class FullDisk:
    """An audit whose disk is full from some line on."""

    def __init__(self, gate: Gate, *, good: int = 0) -> None:
        self.good, self.write_ = good, gate.audit.write

    def __call__(self, phase: str, **fields: object) -> None:
        if self.good <= 0:
            raise DiskFault("the audit cannot be written: no space left")
        self.good -= 1
        self.write_(phase, **fields)


@pytest.mark.case("G-200")
@pytest.mark.parametrize("good", [0, 1, 2, 3])
async def test_where_the_audit_cannot_be_written_nothing_is_let_through(
    good: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def human(event: HumanEvent) -> str:
        return "allow"

    gate = Gate({"content": {"ask_patterns": ["look"]}}, human=human)
    monkeypatch.setattr(gate.audit, "write", FullDisk(gate, good=good))
    got = await gate.check(LOOK, estimate=DEAR)
    if good == 3:
        assert isinstance(got, Allow)
    else:
        assert (type(got), got.rule) == (Halt, "audit")
        assert "no space left" in got.reason


@pytest.mark.case("G-200")
async def test_what_was_set_aside_for_a_check_that_failed_is_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(CAPPED)
    with monkeypatch.context() as patch:
        patch.setattr(gate.audit, "write", FullDisk(gate))
        assert isinstance(await gate.check(LLM, estimate=DEAR), Halt)
    assert isinstance(await gate.check(LLM, estimate=DEAR), Allow)


def unable(*_: object, **__: object) -> None:
    raise BudgetUnavailable("the ledger is damaged", where="here", hint="mend it")


def too_late(*_: object, **__: object) -> Deny:
    """Somebody else took the last place, after the rules had looked."""
    return Deny(rule="spawn.ratePerMinute", reason="10/10")


@pytest.mark.parametrize("admit", [unable, too_late])
async def test_what_was_set_aside_for_what_is_not_admitted_is_free_again(
    admit: Callable[..., Deny | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(CAPPED)
    with monkeypatch.context() as patch:
        patch.setattr(gate.ledger, "admit", admit)
        assert isinstance(await gate.check({"type": "spawn"}, estimate=DEAR), Deny | Halt)
    assert isinstance(await gate.check({"type": "spawn"}, estimate=DEAR), Allow)


async def test_where_the_ledger_cannot_be_read_nothing_is_let_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for method in ("admit", "halts"):
        gate = Gate({})
        monkeypatch.setattr(gate.ledger, method, unable)
        got = await gate.check(LOOK)
        assert isinstance(got, Halt)
        assert (got.rule, got.hint) == ("budget.unavailable", "mend it")
    assert not gate.allows(LOOK)
    monkeypatch.setattr(gate.ledger, "charge", unable)
    with pytest.raises(BudgetUnavailable):
        gate.record(LOOK, {})


async def test_a_fault_of_the_gate_itself_halts(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Rules, "evaluate", broken)
    gate = Gate({})
    got = await gate.check(LOOK)
    assert (type(got), got.rule) == (Halt, "gate.error")


# ---------------------------------------------------------------- what is written


@pytest.mark.case("G-195")
async def test_the_callers_action_is_left_as_it_was() -> None:
    action: dict[str, object] = {
        "type": "look",
        "args": {"keys": ["a", {"b": "c"}]},
        "password": "hunter2hunter2",
    }
    before = repr(action)
    gate = Gate({})
    got = await gate.check(action)
    gate.record(action, {"cost_usd": 1}, aid=got.aid)
    assert repr(action) == before


@pytest.mark.case("G-194")
async def test_rules_see_what_the_log_does_not() -> None:
    key = "sk-" + "canary" * 5
    gate = Gate({"content": {"deny_patterns": [key]}})
    got = await gate.check({"type": "look", "api_key": key, "note": key})
    assert (type(got), got.rule) == (Deny, "content.denyPatterns")
    assert "canary" not in str(gate.audit.entries)


@pytest.mark.case("G-196")
async def test_secrets_in_results_and_facts_are_masked() -> None:
    key = "sk-" + "canary" * 5
    gate = Gate({})
    got = await gate.check(LOOK)
    gate.record(LOOK, {"error": ValueError(f"key {key} refused")}, aid=got.aid)
    gate.annotate({"verdict": key, "reason": key, "where": key, "meta": {"x": [key]}})
    gate.terminate(f"because of {key}")
    assert "canary" not in str(gate.audit.entries)


@pytest.mark.case("G-203")
async def test_a_live_object_in_a_context_is_known_by_its_kind_alone() -> None:
    heard: list[HumanEvent] = []
    gate = Gate({"content": {"ask_patterns": ["look"]}}, human=heard.append)
    await gate.check({"type": "look", "_ctx": {"user": 42, "provider": Provider()}})
    told = str(gate.audit.entries) + repr(heard) + str(heard[0].action)
    assert "canary" not in told
    assert "Provider" in str(gate.audit.entries)


# ---------------------------------------------------------------- facts


async def asked(config: dict[str, object], *noted: object) -> tuple[Gate, HumanEvent, Settled]:
    """Note facts, then ask a person about an action of type `look`."""
    heard: list[HumanEvent] = []
    gate = Gate({"content": {"ask_patterns": ["look"]}, **config}, human=heard.append)
    for fact in noted:
        gate.annotate(fact)
    got = await gate.check(LOOK)
    return gate, heard[0], got


SUSPECT = {"verdict": "suspect", "surface": True}


@pytest.mark.case("G-204")
async def test_a_fact_rides_with_the_next_question_and_decides_nothing() -> None:
    plain = (await asked({}))[2]
    gate, event, got = await asked({}, SUSPECT)
    assert [one.verdict for one in event.annotations] == ["suspect"]
    assert (type(got), got.rule, got.outcome) == (type(plain), plain.rule, plain.outcome)
    assert len(lines(gate, "annotate")) == 1


@pytest.mark.case("G-205")
async def test_a_fact_about_what_can_be_taken_back_is_only_logged() -> None:
    relaxed: dict[str, object] = {
        "human": {"reversible": ["look"], "reversible_escalation": "relaxed"}
    }
    gate, event, _ = await asked(relaxed, SUSPECT)
    assert event.annotations == ()
    assert len(lines(gate, "annotate")) == 1


@pytest.mark.case("G-206")
async def test_without_facts_the_event_is_as_before() -> None:
    gate, event, _ = await asked({})
    assert event.annotations == ()
    assert [line["phase"] for line in gate.audit.entries] == ["gate", "approval", "gate"]


@pytest.mark.case("G-208")
async def test_what_is_no_fact_is_logged_as_that_and_too_much_of_one_is_marked() -> None:
    gate, event, _ = await asked({}, "no fact", SUSPECT | {"meta": {"x": "y" * 1_001}})
    assert len(lines(gate, "annotate_malformed")) == 1
    assert isinstance(event.annotations[0].meta, dict)
    assert event.annotations[0].meta["_truncated"] is True
