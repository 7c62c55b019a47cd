"""A ledger that is lost is made again from the audit, and says what the lost one said."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.errors import ConfigError
from executors.gate.allowance import Estimate, Reservation
from executors.gate.audit.audit import Audit, RunIds
from executors.gate.audit.reading import read
from executors.gate.audit.rebuilding import totals
from executors.gate.audit.redactor import Redactor
from executors.gate.audited import AuditedAllowance
from executors.gate.decisions import Allow, Halt
from executors.gate.gate import Gate
from executors.gate.ledger import Totals
from executors.gate.results import Result, plain_result

pytestmark = pytest.mark.anyio

FILE = "audit.jsonl"
CALL = Estimate(tokens=100, usd=Decimal("0.5"))
BLIND = Estimate(tokens=100, usd=None)


def phases(directory: Path, phase: str) -> int:
    return sum(line.phase == phase for line in read(directory / FILE))


def opened(directory: Path, **sections: object) -> Gate:
    return Gate(dict(sections), directory=directory, run=RunIds(run="run"))


# ---------------------------------------------------------------- one record


@pytest.mark.parametrize(
    ("result", "usd", "tokens", "unpriced"),
    [
        pytest.param({"costUsd": None, "tokens": 7}, "0", 7, True, marks=pytest.mark.case("G-046")),
        pytest.param({"costUsd": -0.5}, "0", 0, False, marks=pytest.mark.case("G-048")),
        pytest.param(
            {"costUsd": 0.1, "tokens": -3}, "0.1", 0, False, marks=pytest.mark.case("G-049")
        ),
        pytest.param(
            {"costUsd": 0.1, "tokens": "3"}, "0.1", 0, False, marks=pytest.mark.case("G-049")
        ),
        pytest.param({"costUsd": math.nan, "tokens": 2}, "0", 2, True, id="nan"),
        pytest.param({"costUsd": 0.7, "pricing": "unpriced"}, "0", 0, True, id="unpriced"),
        pytest.param({"costUsd": "1e-10"}, "0", 0, True, id="text"),
        pytest.param({"costUsd": 1e-9}, "0.000000001", 0, False, id="nano"),
    ],
)
def test_a_record_reads_back_as_it_was_charged(
    tmp_path: Path, result: dict[str, object], usd: str, tokens: int, unpriced: bool
) -> None:
    gate = opened(tmp_path)
    gate.record({"type": "llm"}, result)
    live = gate.allowance.totals()
    assert (live.usd, live.tokens, live.unpriced) == (Decimal(usd), tokens, unpriced)
    assert totals(tmp_path / FILE) == live
    assert phases(tmp_path, "unpriced") == int(unpriced)
    gate.close()


@pytest.mark.case("G-071")
@pytest.mark.case("G-186")
def test_a_record_that_was_cut_to_fit_still_counts_in_full(tmp_path: Path) -> None:
    gate = opened(tmp_path)
    counts = {f"{number:02}-" + "é" * 60: number + 1 for number in range(64)}
    gate.record(
        {"type": "bash", "cmd": "x" * 9_000, "note": "z" * 9_000},
        {"costUsd": "0", "cost_usd": 0.25, "tokens": 9, "counts": counts, "error": "e" * 400},
    )
    assert any(line.fields.get("_truncated") for line in read(tmp_path / FILE))
    live = gate.allowance.totals()
    assert live.resources == counts
    assert (live.usd, live.tool_rounds) == (Decimal("0.25"), 1)
    assert totals(tmp_path / FILE) == live
    gate.close()


def test_what_a_resource_is_called_says_nothing_about_secrets(tmp_path: Path) -> None:
    gate = opened(tmp_path)
    gate.record({"type": "x"}, {"counts": {"token": 3, "secret": 2}})
    assert totals(tmp_path / FILE).resources == {"token": 3, "secret": 2}
    gate.close()


@pytest.mark.case("G-186")
def test_a_resource_of_a_long_name_counts_under_its_beginning(tmp_path: Path) -> None:
    """It may be counted, and no line is longer for it; a bound by such a name is refused."""
    gate = opened(tmp_path)
    long = "漢" * 9_000
    gate.record({"type": "x"}, {"counts": {long: 2, f"{long}!": 3, "\x01" * 5_000: 1}})
    live = gate.allowance.totals()
    assert live.resources == {"漢" * 100: 5, "\x01" * 100: 1}
    assert totals(tmp_path / FILE) == live
    assert all(len(line.raw) <= 3_500 for line in read(tmp_path / FILE))
    gate.close()
    with pytest.raises(ConfigError, match="100 characters at most"):
        opened(tmp_path, budget={"resources": {long: 1}})


@pytest.mark.case("G-058")
async def test_a_bound_that_is_nearly_reached_is_written_once(tmp_path: Path) -> None:
    gate = opened(tmp_path, budget={"max_cost_usd": 1.0, "soft_ratio": 0.8})
    for _ in range(3):
        gate.record({"type": "llm"}, {"costUsd": 0.3})
        assert isinstance(await gate.check({"type": "look"}), Allow)
    assert phases(tmp_path, "budget_warn") == 1
    gate.close()


# ---------------------------------------------------------------- lost ledgers


def _deleted(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def _garbage(path: Path) -> None:
    _deleted(path)
    path.write_bytes(b"no ledger at all, " * 200)


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(_deleted, marks=pytest.mark.case("G-065")),
        pytest.param(_garbage, marks=pytest.mark.case("G-066")),
    ],
)
async def test_a_lost_ledger_is_made_again(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """Spend, a cap that a person set, turns, rounds of tools, children."""
    gate = opened(tmp_path, budget={"max_cost_usd": 1.0})
    checked = await gate.check({"type": "spawn"})
    gate.record({"type": "spawn"}, {"counts": {"writes": 2}}, aid=checked.aid)
    gate.record({"type": "llm"}, {"costUsd": 0.9, "tokens": 100})
    gate.raise_cap("usd", 4)
    live = gate.allowance.totals()
    gate.close()
    lose(tmp_path / "ledger.sqlite")
    again = opened(tmp_path, budget={"max_cost_usd": 1.0})
    assert again.allowance.totals() == live
    assert again.ledger.caps()["usd"] == 4
    assert (live.turns, live.tool_rounds, live.children) == (2, 1, 1)
    again.close()


async def test_a_run_that_was_ended_for_good_stays_so_without_its_ledger(tmp_path: Path) -> None:
    gate = opened(tmp_path)
    gate.terminate("enough")
    gate.close()
    _deleted(tmp_path / "ledger.sqlite")
    again = opened(tmp_path)
    decision = await again.check({"type": "look"})
    assert isinstance(decision, Halt)
    assert decision.rule == "gate.terminated"
    again.close()


def test_lines_that_were_tampered_with_earn_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILE
    book = Audit(path, run=RunIds(run="run"), redactor=Redactor(environment={}))
    odd: list[object] = [-5, "x", None, True, 1.5, [1], "NaN", "-1", "Infinity", "1e999999999"]
    for value in odd:
        book.write("record", action={"type": "llm"}, result={"cost_usd": value, "tokens": value})
        book.write("counts", counts={"writes": value})
        book.write("topup", dimension="usd", new_cap=value)
        book.write("topup", dimension=value, new_cap="7")
        book.write("gate", decision="allow", counted={"turn": value, "child": value})
    found = totals(path)
    assert (found.tokens, found.children, found.resources) == (0, 0, {"writes": 0})
    assert found.usd >= 0
    assert all(cap >= 0 for cap in found.caps.values())


def test_an_audit_that_is_not_there_adds_nothing(tmp_path: Path) -> None:
    assert totals(tmp_path / "none.jsonl") == Totals()


# ---------------------------------------------------------------- any sequence

_COSTS = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.decimals() | st.text()
_RESULTS = st.fixed_dictionaries(
    {},
    optional={
        "costUsd": _COSTS,
        "tokens": st.integers(-5, 10**6) | st.floats() | st.text() | st.none(),
        "counts": st.dictionaries(
            st.sampled_from(["writes", "token", "é" * 90]), st.integers(-2, 9)
        ),
        "pricing": st.sampled_from(["priced", "unpriced", "odd"]),
    },
)
_TYPES = st.sampled_from(["read", "llm", "spawn", "defer", "bash"])
_ESTIMATES = st.sampled_from([None, CALL, BLIND])
_STEPS = st.one_of(
    st.tuples(st.just("unchecked"), _TYPES, _RESULTS),
    st.tuples(st.just("checked"), _TYPES, _ESTIMATES, _RESULTS),
    st.tuples(st.just("released"), _TYPES, _ESTIMATES),
    st.tuples(st.just("failed"), _TYPES, _ESTIMATES),
    st.tuples(st.just("call"), st.sampled_from([CALL, BLIND]), _RESULTS),
    st.tuples(st.just("cap"), st.sampled_from(["usd", "resource.writes"]), st.integers(0, 10**6)),
)


class _Played:
    """A gate that takes steps."""

    def __init__(self, directory: Path) -> None:
        config = {
            "limits": {"max_children": 5},
            "net": {"allow_domains": ["example.com"]},
            "fs": {"read_scope": ["/"]},
        }
        self.gate = opened(directory, **config)
        self.calls = AuditedAllowance(self.gate.allowance, self.gate.audit)

    async def take(self, step: tuple[object, ...]) -> None:
        name, *rest = step
        methods: dict[object, Callable[..., Awaitable[None]]] = {
            "unchecked": self.unchecked,
            "checked": self.checked,
            "released": self.released,
            "failed": self.failed,
            "call": self.call,
            "cap": self.cap,
        }
        await methods[name](*rest)

    async def unchecked(self, kind: str, result: object) -> None:
        self.gate.record({"type": kind}, result)

    async def checked(self, kind: str, estimate: Estimate | None, result: object) -> None:
        decision = await self.gate.check(_action(kind), estimate=estimate)
        if isinstance(decision, Allow):
            self.gate.record({"type": kind}, result, aid=decision.aid)

    async def released(self, kind: str, estimate: Estimate | None) -> None:
        decision = await self.gate.check(_action(kind), estimate=estimate)
        self.gate.release(decision.aid)

    async def failed(self, kind: str, estimate: Estimate | None) -> None:
        async def fails() -> None:
            raise OSError("gone")

        try:
            await self.gate.run(_action(kind), fails, estimate=estimate)
        except OSError:
            return

    async def call(self, estimate: Estimate, result: object) -> None:
        held = self.calls.reserve(estimate)
        if isinstance(held, Reservation):
            took: Result = plain_result(result)
            usd = None if took.unpriced else took.usd
            self.calls.settle(held, tokens=took.tokens, usd=usd)

    async def cap(self, dimension: str, cap: int) -> None:
        self.gate.raise_cap(dimension, cap)


def _action(kind: str) -> dict[str, str]:
    return {"type": kind, "path": "/tmp/x", "cmd": "ls"}


@pytest.mark.case("G-070")
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(_STEPS, max_size=12))
def test_live_totals_are_those_that_the_audit_adds_up_to(steps: list[tuple[object, ...]]) -> None:
    """For any sequence of checks, records, calls, failures and top-ups; and after the ledger is lost."""

    async def played(directory: Path) -> Totals:
        game = _Played(directory)
        for step in steps:
            await game.take(step)
        live = game.gate.allowance.totals()
        game.gate.close()
        return live

    with TemporaryDirectory() as folder:
        directory = Path(folder)
        live = anyio.run(played, directory)
        assert totals(directory / FILE) == live
        _deleted(directory / "ledger.sqlite")
        again = opened(directory)
        assert again.allowance.totals() == live
        again.close()
