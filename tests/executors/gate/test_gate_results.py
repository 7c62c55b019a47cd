"""Whatever is reported of an action, what it draws is a sound amount."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import Halted
from executors.gate.results import Result, plain_result


class Raising(Mapping[str, object]):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getitem__(self, name: str) -> object:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        return iter(["cost_usd"])

    def __len__(self) -> int:
        return 1


class Liar(int):
    def __int__(self) -> int:
        return -5

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        raise ValueError


class Shouting(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("report", "result"),
    [
        pytest.param({}, Result(), marks=pytest.mark.case("G-050")),
        pytest.param({"cost_usd": None}, Result(unpriced=True), marks=pytest.mark.case("G-046")),
        pytest.param(
            {"costUsd": None, "tokens": 9},
            Result(unpriced=True, tokens=9),
            marks=pytest.mark.case("G-046"),
        ),
        pytest.param({"cost_usd": -0.5}, Result(), marks=pytest.mark.case("G-048")),
        pytest.param({"tokens": -3}, Result(), marks=pytest.mark.case("G-049")),
        pytest.param({"tokens": "10"}, Result(), marks=pytest.mark.case("G-049")),
        pytest.param(
            {"cost_usd": float("nan")}, Result(unpriced=True), marks=pytest.mark.case("K8-13")
        ),
        ({"cost_usd": float("nan"), "tokens": 9}, Result(unpriced=True, tokens=9)),
        ({"cost_usd": float("inf")}, Result(unpriced=True)),
        ({"cost_usd": Decimal("sNaN")}, Result(unpriced=True)),
        ({"cost_usd": "0.5"}, Result(unpriced=True)),
        ({"cost_usd": True}, Result(unpriced=True)),
        ({"cost_usd": 10**400}, Result(unpriced=True)),
        ({"cost_usd": -(10**400)}, Result()),
        ({"cost_usd": Decimal("-1e9999")}, Result()),
        ({"cost_usd": 0.7, "pricing": "unpriced"}, Result(usd=Decimal("0.7"), unpriced=True)),
        ({"cost_usd": 0.1}, Result(usd=Decimal("0.1"))),
        ({"usd": 1e-10}, Result()),
        ({"cost": 2}, Result(usd=Decimal(2))),
        ({"tokens": 2.9}, Result(tokens=2)),
        ({"tokens": 1e300}, Result(tokens=10**15)),
        ({"tokens": True}, Result()),
        ({"tokens": Liar(7)}, Result(tokens=7)),
        ({"counts": {"writes": 2, "bad": "x", 3: 4}}, Result(counts={"writes": 2})),
        ({"counts": ["writes"]}, Result()),
        ({"error": ValueError("boom")}, Result(error="ValueError: boom")),
        ({"error": "x" * 600}, Result(error="x" * 500)),
        ({"error": 7}, Result(error="int")),
        ({"cost_usd": 1, "pricing": Shouting("x")}, Result(unpriced=True)),
        (Raising(ValueError()), Result(unpriced=True)),
        (Raising(Halted(bound="x", scope="y", limit="z")), Result(unpriced=True)),
        ("done", Result()),
        (None, Result()),
        (Result(tokens=4), Result(tokens=4)),
    ],
)
def test_a_report_is_made_plain(report: object, result: Result) -> None:
    assert plain_result(report) == result


def test_the_first_of_many_resources_count() -> None:
    assert len(plain_result({"counts": {str(n): 1 for n in range(200)}}).counts) == 64


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["cost_usd", "usd", "tokens", "counts", "error", "pricing"]), anything
    )
)
def test_no_report_whatever_raises_or_draws_less_than_nothing(report: dict[str, object]) -> None:
    got = plain_result(report)
    assert got.usd.is_finite()
    assert got.usd >= 0
    assert min([got.tokens, *got.counts.values()]) >= 0
