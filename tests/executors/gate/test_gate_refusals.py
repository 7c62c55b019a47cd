"""Configurations that say what has no effect, or what nobody can keep, are refused as they are read."""

from pathlib import Path

import pytest

from executors.errors import ConfigError
from executors.gate.config.load import load_config
from executors.gate.ledger import LedgerAllowance
from tests.executors.gate.ledgers import Config, call, made, refused, reserved


@pytest.mark.parametrize(
    "config",
    [
        {"budget": {"max_tokens": 10**400}},
        {"budget": {"max_cost_usd": 10**400}},
        {"budget": {"max_cost_usd": "1_000"}},
        {"budget": {"resources": {"writes": 2**64}}},
        {"content": {"deny_patterns": ["\ud800"]}},
        {"flags": {"\ud800": {"a": "deny"}}},
        {"budget": {"resources": {"\udfff": 1}}},
        {"budget": {"shared_file": "\ud800"}},
    ],
)
def test_what_no_file_can_keep_is_refused(config: object) -> None:
    with pytest.raises(ConfigError):
        load_config(config)


@pytest.mark.parametrize(
    "config",
    [
        {"tools": {"denylist": ["bash", "llm"]}},
        {"tools": {"deny_arg_patterns": {"llm": ["x"]}}},
        {"flags": {"type": {"llm": "deny"}}},
        {"flags": {"tool": {"llm": "ask"}}},
    ],
)
def test_a_rule_about_models_is_refused_and_says_what_bounds_them(config: object) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(config)
    assert "budget" in str(caught.value)
    assert "data.hosts" in str(caught.value)


@pytest.mark.parametrize(
    "said", ["max_tokens: 010", "max_cost_usd: 010", "max_tokens: 1_000", "max_tokens: 1e999"]
)
def test_a_number_that_some_read_otherwise_is_refused(said: str, tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(f"budget:\n  {said}\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        load_config(path)


@pytest.mark.case("G-043")
def test_a_budget_of_nothing_passes_what_is_free_and_nothing_whose_price_nobody_knows() -> None:
    with made(max_cost_usd=0) as ledger:
        allowance = LedgerAllowance(ledger)
        full = refused(allowance, call(None))
        assert full.final
        assert "budget.maxCostUsd" in str(full.halted)
        free = reserved(allowance, call("0"))
        allowance.settle(free, tokens=1, usd=None)


def test_a_bound_of_turns_is_raised_with_another_gate() -> None:
    with made(config=Config(limits={"max_turns": 0})) as ledger:
        halt = ledger.halts()
        assert halt is not None
        assert "limits.max_turns" in (halt.hint or "")
        assert "rlm resume RUN --gate FILE" in (halt.hint or "")
