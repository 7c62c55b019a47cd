"""How the bounds of a gate are written: five kinds of empty, and no number that is none."""

import math
from decimal import Decimal

import pytest
from pydantic import ValidationError

from executors.gate.config.budget import BudgetSection
from executors.gate.config.limits import LimitsSection
from executors.gate.config.section import Section
from executors.gate.config.spawning import DeferSection, SpawnSection


@pytest.mark.case("G-059")
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (BudgetSection, "soft_ratio", 0),
        (BudgetSection, "soft_ratio", 1),
        (BudgetSection, "soft_ratio", "x"),
        (BudgetSection, "resources", {"writes": -1}),
        (BudgetSection, "resources", {"": 1}),
        (BudgetSection, "max_cost_usd", -0.01),
        (BudgetSection, "max_cost_usd", math.nan),
        (BudgetSection, "max_cost_usd", "dear"),
        (BudgetSection, "max_cost_usd", True),
        (BudgetSection, "max_tokens", 1.5),
        (BudgetSection, "max_tokens", math.nan),
        (BudgetSection, "max_tokens", -math.inf),
        (BudgetSection, "max_tokens", "12"),
        (BudgetSection, "max_calls", False),
        (BudgetSection, "strict", 1),
        (BudgetSection, "shared_file", " "),
        (BudgetSection, "maxCostUsd", 1),
        (LimitsSection, "max_depth", -1),
        (SpawnSection, "rate_per_minute", "ten"),
        (DeferSection, "rate_per_minute", -1),
    ],
)
def test_what_is_no_bound_is_refused_and_quoted(
    section: type[Section], key: str, value: object
) -> None:
    with pytest.raises(ValidationError, match=key):
        section.model_validate({key: value})


@pytest.mark.parametrize(
    ("given", "kept"), [(0.1, "0.1"), (5, "5"), ("0.30", "0.30"), (Decimal("1e-9"), "1e-9")]
)
def test_usd_are_exact(given: object, kept: str) -> None:
    section = BudgetSection.model_validate({"max_cost_usd": given})
    assert section.max_cost_usd == Decimal(kept)


def test_zero_is_a_bound_and_infinity_has_to_be_said() -> None:
    said = BudgetSection.model_validate({"max_cost_usd": 0, "max_tokens": math.inf})
    assert (said.max_cost_usd, said.max_tokens, said.max_calls) == (Decimal(0), math.inf, None)
    limits = LimitsSection()
    assert all(map(math.isfinite, (limits.max_turns, limits.max_tool_rounds)))
    assert all(map(math.isfinite, (limits.max_children, limits.max_depth)))
    assert (SpawnSection().rate_per_minute, DeferSection().rate_per_minute) == (10, 15)


@pytest.mark.parametrize(
    "section",
    [
        BudgetSection.model_validate(
            {"max_cost_usd": 0.1, "max_tokens": math.inf, "resources": {"a": 2, "b": "inf"}}
        ),
        BudgetSection.model_validate({"max_cost_usd": math.inf, "soft_ratio": 0.8, "strict": True}),
        LimitsSection.model_validate({"max_turns": math.inf, "max_depth": 0}),
        SpawnSection.model_validate({"rate_per_minute": math.inf}),
    ],
)
def test_a_section_reloads_equal_from_its_json(section: Section) -> None:
    assert type(section).model_validate_json(section.model_dump_json()) == section
