"""The file of the ledger: made again where it is damaged, left alone where it breaks in use."""

import json
import sqlite3
import stat
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import BudgetUnavailable, RunDirError
from executors.gate.ledger import LedgerAllowance, Totals, recorded
from executors.gate.ledger import file as ledger_file
from tests.executors.gate.families import go, kill, process
from tests.executors.gate.ledgers import call, charge, made, refused, reserved

GARBAGE = b"not a ledger at all " * 500
AUDITED = Totals(
    calls=3,
    turns=5,
    tool_rounds=2,
    tokens=70,
    usd=Decimal("4.5"),
    priced=3,
    unpriced=False,
    children=1,
    resources={"writes": 2},
    caps={"usd": Decimal(20), "resource.writes": Decimal(3)},
)


@pytest.mark.case("G-065")
def test_a_file_that_is_missing_is_made_from_the_audit(tmp_path: Path) -> None:
    with made(tmp_path / "ledger", max_cost_usd=5, rebuild=lambda: AUDITED) as ledger:
        assert ledger.totals() == AUDITED
        assert ledger.caps()["usd"] == 20
        ledger.charge(charge("0.5"))
    with made(tmp_path / "ledger", max_cost_usd=5, rebuild=_never) as again:
        assert again.totals().usd == 5


@pytest.mark.case("G-066")
@pytest.mark.parametrize("damage", ["garbage", "cut", "zeroes", "short"])
def test_a_damaged_file_is_kept_aside_and_made_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ledger"
    made(path).close()
    raw = path.read_bytes()
    damaged = {"cut": raw[:5_000], "zeroes": raw[:100] + bytes(len(raw) - 100), "short": b"{}"}
    bad = damaged.get(damage, GARBAGE)
    path.write_bytes(bad)
    with made(path, rebuild=lambda: AUDITED) as ledger:
        assert ledger.totals() == AUDITED
    (kept,) = tmp_path.glob("ledger.damaged-*")
    assert kept.read_bytes() == bad
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_file_of_which_nobody_knows_the_totals_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_bytes(GARBAGE)
    with pytest.raises(BudgetUnavailable, match="damaged"):
        made(tmp_path / "ledger")
    assert (tmp_path / "ledger").read_bytes() == GARBAGE


@pytest.mark.case("G-068")
def test_a_file_that_breaks_in_use_stops_the_run_and_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = made(path, rebuild=Totals)
    allowance = LedgerAllowance(ledger)
    ledger.charge(charge("0.5"))
    held = reserved(allowance, call("0.1"))
    path.write_bytes(GARBAGE)
    with pytest.raises(BudgetUnavailable, match="damaged or replaced"):
        ledger.charge(charge("0.5"))
    allowance.settle(held, tokens=1, usd=Decimal("0.1"))  # what is paid is paid
    full = refused(allowance, call("9", tokens=10**6))
    assert full.final
    assert isinstance(full.halted, BudgetUnavailable)
    allowance.close()
    ledger.close()
    assert path.read_bytes() == GARBAGE


def test_a_file_that_was_deleted_or_replaced_in_use_is_no_ledger_any_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = made(path)
    path.unlink()
    with pytest.raises(BudgetUnavailable):
        ledger.totals()
    made(path).close()
    with pytest.raises(BudgetUnavailable):
        ledger.charge(charge("1"))
    ledger.close()
    with made(path) as other:
        assert other.totals() == Totals()


@pytest.mark.case("G-069")
def test_a_lock_of_a_live_process_lets_nothing_through_and_falls_with_it(tmp_path: Path) -> None:
    """SQLite's locks are the system's: none is stale, so there is nothing to wait for after a death."""
    with made(tmp_path / "ledger", wait=0.05) as ledger:
        allowance = LedgerAllowance(ledger)
        holder = process("hold", tmp_path / "ledger", "-", 0)
        try:
            go(holder)
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            full = refused(allowance, call("0.1"))
            assert full.final
            assert "another process has held it for 0.05 s" in str(full.halted)
            assert "wait for that process, or end it" in str(full.halted)
            with pytest.raises(BudgetUnavailable):
                ledger.admit("spawn")
        finally:
            kill(holder)
        assert ledger.admit("spawn") is None
        reserved(LedgerAllowance(ledger), call("0.1"))


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("PRAGMA user_version = 99", "version 99"),
        ("PRAGMA application_id = 7", "another program"),
    ],
)
def test_a_newer_ledger_and_another_programs_file_are_left_alone(
    tmp_path: Path, statement: str, why: str
) -> None:
    path = tmp_path / "ledger"
    made(path).close()
    file = sqlite3.connect(path)
    file.execute(statement)
    file.close()
    before = path.read_bytes()
    with pytest.raises(BudgetUnavailable, match=why):
        made(path, rebuild=_never)
    assert path.read_bytes() == before


def test_a_folder_over_the_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nfs(path: Path) -> str:
        return "nfs4"

    monkeypatch.setattr(ledger_file, "file_system", nfs)
    with pytest.raises(RunDirError, match=r"network file system \(nfs4\)"):
        made(tmp_path / "ledger")


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunDirError, match="cannot be made"):
        made(tmp_path / "file" / "ledger")


def test_two_objects_of_one_process_may_use_the_file_and_close_in_any_order(
    tmp_path: Path,
) -> None:
    one, two = made(tmp_path / "ledger"), made(tmp_path / "ledger")
    one.charge(charge("1"))
    two.charge(charge("1"))
    one.close()
    with made(tmp_path / "ledger") as third:
        third.charge(charge("1"))
    two.charge(charge("1"))
    assert two.totals().usd == 4
    two.close()


def test_a_closed_ledger_says_so(tmp_path: Path) -> None:
    ledger = made(tmp_path / "ledger")
    ledger.close()
    ledger.close()
    with pytest.raises(BudgetUnavailable, match="closed"):
        ledger.totals()


# ---------------------------------------------------------------- live and added up

_records = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from([None, "0", "0.1", "0.0000001", "3", "0.000000001"]),
        st.integers(0, 50),
        st.dictionaries(st.sampled_from(["writes", "reads"]), st.integers(0, 3), max_size=2),
    ),
    max_size=20,
)


@pytest.mark.case("G-070", "G-071")
@given(_records)
def test_totals_are_those_that_the_lines_add_up_to(
    records: list[tuple[bool, str | None, int, dict[str, int]]],
) -> None:
    """A line need keep no more than kind, cost, pricing, tokens and counts."""
    with made() as ledger:
        lines: list[str] = []
        for llm, usd, tokens, counts in records:
            ledger.charge(charge(usd, tokens=tokens, llm=llm, **counts))
            fields = {"llm": llm, "usd": usd, "tokens": tokens, "counts": counts}
            lines.append(json.dumps(fields))
        live = ledger.totals()
    assert reduce(Totals.__add__, map(_read, lines), Totals()) == live


def _read(line: str) -> Totals:
    fields = json.loads(line)
    return recorded(
        call=fields["llm"],
        usd=Decimal(fields["usd"] or 0),
        unpriced=fields["usd"] is None,
        tokens=fields["tokens"],
        counts=fields["counts"],
    )


def test_calls_of_an_allowance_add_up_to_their_lines_as_well() -> None:
    with made() as ledger:
        allowance = LedgerAllowance(ledger)
        rebuilt = Totals()
        for usd in ("0.1", "0.000000001", "0", "0.25"):
            allowance.settle(reserved(allowance, call("0.3")), tokens=7, usd=Decimal(usd))
            rebuilt += recorded(call=True, usd=Decimal(usd), tokens=7)
        assert allowance.totals() == rebuilt
        allowance.close()
        assert ledger.totals() == rebuilt


def _never() -> Totals:
    raise AssertionError("nobody asked for the audit")
