"""Tokens in disjoint tiers, and what they cost."""

from decimal import Decimal

import pytest

from executors.errors import ValidationError
from executors.models.base import ModelInfo
from executors.models.openai.replies import read_usage
from executors.models.prices import NoPrices, Price, PriceTable, cost_of, worst_cost
from executors.usage import Usage

PRICE = Price(
    input=Decimal(10), output=Decimal(30), cache_read=Decimal(1), cache_write=Decimal("12.5")
)


def info(name: str = "gpt-x", origin: str = "https://host:443") -> ModelInfo:
    return ModelInfo(provider="openai", name=name, origin=origin)


@pytest.mark.case("K8-1", "K8-4")
def test_cached_tokens_are_taken_out_of_the_prompt_and_billed_once() -> None:
    usage = read_usage(
        {
            "prompt_tokens": 17_111,
            "completion_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 17_102},
        }
    )
    assert usage == Usage(input=9, cache_read=17_102, output=0)
    assert (usage.prompt, usage.total) == (17_111, 17_111)
    assert cost_of(usage, PRICE) == (9 * Decimal(10) + 17_102 * Decimal(1)) / 1_000_000


@pytest.mark.case("K8-2")
def test_the_same_call_costs_the_same_whether_cached_tokens_were_inside_or_beside() -> None:
    inside = read_usage(
        {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 60},
        }
    )
    beside = Usage(input=40, cache_read=60, output=7)
    assert cost_of(inside, PRICE) == cost_of(beside, PRICE)


def test_a_write_to_a_cache_has_its_own_price_and_a_missing_tier_costs_what_input_costs() -> None:
    usage = Usage(input=0, cache_write=1_000_000, cache_read=1_000_000, output=0)
    assert cost_of(usage, PRICE) == Decimal("13.5")
    assert cost_of(usage, Price(input=Decimal(10), output=Decimal(30))) == Decimal(20)


@pytest.mark.case("K8-5")
def test_an_unknown_price_is_none_and_never_zero() -> None:
    table = PriceTable({"gpt-x": PRICE})
    assert table.price(info()) is PRICE
    assert table.price(info("gpt-y")) is None
    assert cost_of(Usage(input=1, output=1), None) is None
    assert NoPrices().price(info()) is None


def test_what_runs_in_this_process_is_free() -> None:
    price = PriceTable({}).price(info(origin="in-process"))
    assert cost_of(Usage(input=5, output=5), price) == 0


@pytest.mark.case("K8-7")
@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({"prompt_tokens": "10", "completion_tokens": None}, Usage(input=10)),
        ({"prompt_tokens": -5, "completion_tokens": 3}, Usage(output=3)),
        ({"prompt_tokens": 10.0, "completion_tokens": "3"}, Usage(input=10, output=3)),
        ({"prompt_tokens": 10.5, "completion_tokens": True}, Usage()),
        ({"prompt_tokens": "ten", "completion_tokens": [3]}, Usage()),
        ({"prompt_tokens": "9" * 5_000, "completion_tokens": 1e999}, Usage()),
        ({"prompt_tokens": 1 << 63, "completion_tokens": 1e300}, Usage()),
        ({"prompt_tokens": "1" + "0" * 19, "completion_tokens": 1}, Usage(output=1)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            Usage(input=5),
        ),
        (None, Usage()),
        ("42", Usage()),
        ([], Usage()),
    ],
)
def test_counts_of_any_shape_are_read_or_unknown(raw: object, usage: Usage) -> None:
    assert read_usage(raw) == usage


@pytest.mark.case("K8-19")
@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}, "none", {"other": {}}])
def test_details_of_any_shape_do_no_harm(details: object) -> None:
    usage = read_usage(
        {"prompt_tokens": 4, "completion_tokens": 2, "prompt_tokens_details": details}
    )
    assert usage == Usage(input=4, output=2)


@pytest.mark.case("K8-8")
def test_a_total_with_an_unknown_part_is_unknown() -> None:
    assert Usage(input=3).total is None
    assert Usage(output=3).total is None
    assert cost_of(Usage(input=3), PRICE) is None


@pytest.mark.case("K8-7", "K8-13")
def test_negative_counts_and_prices_that_are_none_are_refused() -> None:
    with pytest.raises(ValidationError, match="-5 is no count of tokens"):
        Usage(input=-5, output=1)
    for bad in (Decimal(-1), Decimal("NaN"), 3.0, None):
        with pytest.raises(ValidationError, match="is no price"):
            Price(input=bad, output=Decimal(1))  # type: ignore[arg-type]


def test_the_worst_case_is_at_least_every_way_the_tokens_can_fall_into_tiers() -> None:
    worst = worst_cost(100, 10, PRICE)
    for usage in (
        Usage(input=100, output=10),
        Usage(input=0, cache_read=100, output=10),
        Usage(input=0, cache_write=100, output=10),
    ):
        cost = cost_of(usage, PRICE)
        assert cost is not None
        assert cost <= worst
    assert worst == cost_of(Usage(input=0, cache_write=100, output=10), PRICE)
