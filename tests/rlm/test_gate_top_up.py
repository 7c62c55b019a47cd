"""What a person writes to let a run have more."""

from decimal import Decimal

import pytest

import rlm
from executors.errors import ValidationError
from rlm.options.top_up import BudgetChange


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("usd=20", BudgetChange(usd=Decimal(20))),
        (" usd = 0.1 , calls=5000,", BudgetChange(usd=Decimal("0.1"), calls=5_000)),
        ("tokens=1_000_000", BudgetChange(tokens=1_000_000)),
        ("usd=0", BudgetChange(usd=Decimal(0))),
        ({"usd": 2.5, "calls": 7}, BudgetChange(usd=Decimal("2.5"), calls=7)),
    ],
)
def test_bounds_are_read_to_the_last_digit(given: object, wanted: BudgetChange) -> None:
    assert BudgetChange.read(given) == wanted  # type: ignore[arg-type]


@pytest.mark.case("G-028")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "raises nothing"),
        ({}, "raises nothing"),
        ("20", "'20' is no bound of a run"),
        ("euro=3", "'euro' is no bound of a run"),
        ("turns=5", "'turns' is no bound of a run"),
        ("usd=1,usd=2", "there twice"),
        ("usd=", "usd='' is no bound"),
        ("usd=nan", "no bound"),
        ("usd=inf", "no bound"),
        ("usd=-1", "no bound"),
        ("calls=1.5", "whole number"),
        ("calls=lots", "no bound"),
        ({"usd": True}, "no bound"),
        ({"calls": None}, "no bound"),
    ],
)
def test_what_is_no_bound_is_refused_and_told(given: object, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        BudgetChange.read(given)  # type: ignore[arg-type]
    assert why in str(caught.value)
    assert "--budget usd=20" in str(caught.value)


def test_bounds_that_are_not_named_stay() -> None:
    caps = rlm.Caps(calls=7, usd=Decimal(1), seconds=5.0)
    assert BudgetChange(usd=Decimal(20)).over(caps) == rlm.Caps(
        calls=7, usd=Decimal(20), seconds=5.0
    )
