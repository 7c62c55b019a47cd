"""Prices that providers publish, and what they say themselves that an answer cost."""

import json
import sys
from collections.abc import Iterator
from datetime import time
from decimal import Decimal
from typing import cast

import pytest
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelPrice,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from genai_prices.types import ModelInfo as TableModel

from executors.calls.tariff import Tariff
from executors.errors import MissingExtra, ValidationError
from executors.ids import ContentKey
from executors.journal.filed_replies import answer_line, thaw_reply
from executors.journal.records import Paid
from executors.messages import ModelReply
from executors.models.base import ModelInfo
from executors.models.openai.replies import Asked, StreamFold, read_cost, read_reply
from executors.models.price import Price, cost_of, worst_cost
from executors.models.prices import KnownPrices, NoPrices, PriceTable, price_list
from executors.models.published import (
    _dearest,
    _price,
    is_published,
    prices_source,
    published,
)
from executors.models.wire.sse import ServerEvent
from executors.usage import Usage

OPENAI = "https://api.openai.com:443"
LONG = Price(
    input=Decimal(1),
    output=Decimal(10),
    cache_read=Decimal("0.1"),
    long_above=200_000,
    long_input=Decimal(2),
    long_output=Decimal(15),
    long_cache_read=Decimal("0.2"),
)
ASKED = Asked(where="here", model="m", max_tokens=9, temperature=None)


def info(name: str = "gpt-4o", origin: str = OPENAI) -> ModelInfo:
    return ModelInfo(provider="openai", name=name, origin=origin)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    published.cache_clear()
    prices_source.cache_clear()
    yield
    published.cache_clear()
    prices_source.cache_clear()


# ---------------------------------------------------------------- whose price it is
@pytest.mark.case("K8-5")
def test_the_price_of_a_model_on_its_own_server_is_known() -> None:
    price = KnownPrices().price(info())
    assert price is not None
    assert 0 < price.input < price.output
    assert price.cache_read is not None
    assert price.cache_read < price.input


@pytest.mark.case("K8-5")
@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("https://my.proxy:443", "gpt-4o"),
        ("http://localhost:8000", "gpt-4o"),
        ("https://api.openai.com.evil.example:443", "gpt-4o"),
        ("https://evil-api.openai.com:443", "gpt-4o"),
        ("https://api.openai.com:8443", "gpt-4o"),
        ("http://api.openai.com:80", "gpt-4o"),
        ("https://mine.openai.azure.com:443", "gpt-4o"),
        ("https://api.perplexity.ai:443", "sonar"),
        (OPENAI, "no-such-model"),
        (OPENAI, ""),
    ],
)
def test_elsewhere_the_same_name_has_no_known_price(origin: str, name: str) -> None:
    """Nor has a name that the customer chose, nor a model that takes money for requests."""
    assert KnownPrices().price(info(name, origin)) is None


def test_what_runs_in_this_process_is_free_also_by_the_table() -> None:
    price = KnownPrices().price(info("gpt-4o", "in-process"))
    assert cost_of(Usage(input=5, output=5), price) == 0


def test_the_callers_rates_come_before_the_table() -> None:
    mine = Price(input=Decimal(1), output=Decimal(2))
    assert KnownPrices({"gpt-4o": mine}).price(info()) is mine
    assert KnownPrices({"gpt-4o": mine}).price(info("gpt-4o-mini")) != mine
    assert PriceTable({"gpt-4o": mine}).price(info("gpt-4o-mini")) is None


def test_the_table_is_what_is_known_where_nothing_is_said() -> None:
    assert price_list(None).price(info()) == published(OPENAI, "gpt-4o")


def test_without_the_extra_nothing_is_known_and_who_asks_for_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert not is_published()
    assert isinstance(price_list(None), NoPrices)
    assert published(OPENAI, "gpt-4o") is None
    assert prices_source() is None
    with pytest.raises(MissingExtra, match="'prices'"):
        KnownPrices()


def test_the_table_says_which_it_is_and_how_new() -> None:
    source = prices_source()
    assert source is not None
    assert str(source).startswith("genai-prices ")
    assert source.known_to is not None
    assert f"{source.known_to:%Y-%m-%d}" in str(source)


# ---------------------------------------------------------------- what the table may hold
def test_a_price_that_changes_with_the_hour_is_the_dearest() -> None:
    dear = ModelPrice(input_mtok=Decimal(3), output_mtok=Decimal(4))
    cheap = ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(2))
    night = TimeOfDateConstraint(start_time=time(22), end_time=time(6))
    model = TableModel(
        id="m",
        match=ClauseEquals(equals="m"),
        prices=[ConditionalPrice(prices=dear), ConditionalPrice(prices=cheap, constraint=night)],
    )
    assert _price(_dearest(model)) == Price(input=Decimal(3), output=Decimal(4))


@pytest.mark.parametrize("unit", ["requests_kcount", "output_reasoning_mtok"])
def test_a_price_that_does_not_follow_from_tokens_is_unknown(unit: str) -> None:
    tokens = {"input_mtok": Decimal(1), "output_mtok": Decimal(2)}
    assert _price(ModelPrice(**tokens)) is not None
    assert _price(ModelPrice(**tokens, **{unit: Decimal(5)})) is None
    assert _price(ModelPrice(input_mtok=Decimal(1))) is None


def test_a_dearer_long_prompt_is_read_and_one_of_many_steps_is_unknown() -> None:
    def steps(*starts: int) -> TieredPrices:
        tiers = [Tier(start=start, price=Decimal(start)) for start in starts]
        return TieredPrices(base=Decimal(1), tiers=tiers)

    found = _price(ModelPrice(input_mtok=steps(200), output_mtok=Decimal(9)))
    assert found == Price(
        input=Decimal(1), output=Decimal(9), long_above=200, long_input=Decimal(200)
    )
    assert _price(ModelPrice(input_mtok=steps(200, 300), output_mtok=Decimal(9))) is None


# ---------------------------------------------------------------- long prompts
@pytest.mark.case("K8-1")
def test_a_long_prompt_costs_the_long_price_as_a_whole_cached_tokens_included() -> None:
    short = Usage(input=100_000, cache_read=100_000, output=1_000)
    longer = Usage(input=100_000, cache_read=100_001, output=1_000)
    assert cost_of(short, LONG) == Decimal("0.12")
    assert cost_of(longer, LONG) == Decimal("0.2350002")


def test_the_worst_case_of_a_long_prompt_is_at_least_its_cost() -> None:
    for prompt in (200_000, 200_001):
        cost = cost_of(Usage(input=prompt, output=50), LONG)
        assert cost is not None
        assert cost <= worst_cost(prompt, 50, LONG)
    assert worst_cost(200_001, 0, LONG) > 2 * worst_cost(200_000, 0, LONG)


def test_a_long_price_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="long_input"):
        Price(input=Decimal(1), output=Decimal(1), long_above=9, long_input=Decimal(-1))


# ---------------------------------------------------------------- what the provider says
@pytest.mark.case("K8-20")
@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0125}, "0.0125"),
        ({"cost": "0.5"}, "0.5"),
        ({"cost": 0}, "0"),
        ({"cost": 1e-7}, "1E-7"),
        ({"estimated_cost": 0.25}, "0.25"),
        ({"cost": {"total_cost": 0.006}}, "0.006"),
        ({"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 2}}, "2.1"),
        ({"cost": 0.1, "is_byok": True}, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "much"}, None),
        ({"cost": float("nan")}, None),
        ({"cost": 1e300}, None),
        ({"cost": None}, None),
        ({"cost": [1]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_cost_that_a_server_states_is_read_or_unknown(usage: object, cost: str | None) -> None:
    assert read_cost(usage) == (None if cost is None else Decimal(cost))


def test_a_stated_cost_comes_with_a_reply_whole_or_streamed() -> None:
    whole = (
        b'{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"cost":0.25}}'
    )
    assert read_reply(whole, ASKED).cost == Decimal("0.25")
    fold = StreamFold(ASKED)
    for data in (
        b'{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}',
        b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.5}}',
    ):
        fold.feed(ServerEvent(name="", data=data))
    reply = fold.reply()
    assert reply is not None
    assert reply.cost == Decimal("0.5")


def test_what_the_provider_says_comes_before_any_price() -> None:
    tariff = Tariff(price_list(Price(input=Decimal(1_000_000), output=Decimal(0))), info())
    usage = Usage(input=3, output=1)
    assert tariff.cost(ModelReply(text="", stop="end", usage=usage)) == 3
    said = ModelReply(text="", stop="end", usage=usage, cost=Decimal("0.5"))
    assert tariff.cost(said) == Decimal("0.5")
    unpriced = Tariff(NoPrices(), info())
    assert unpriced.cost(said) == Decimal("0.5")
    assert unpriced.cost(ModelReply(text="", stop="end", usage=usage)) is None


def test_a_stated_cost_is_filed_with_its_answer() -> None:
    reply = ModelReply(text="x", stop="end", cost=Decimal("1E-7"))
    paid = Paid(tokens=1, usd=Decimal("1E-7"), attempts=1)
    line = answer_line(ContentKey("ab" * 16), reply, paid)
    assert thaw_reply(cast("dict[str, object]", json.loads(line)), None) == reply
