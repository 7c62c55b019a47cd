"""A price and limits that are named for a run, which remembers them."""

import re
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from executors.models.fakes.acts import Completion
from rlm import (
    Caps,
    Completed,
    Incomplete,
    Limits,
    Price,
    PriceTable,
    ValidationError,
    count,
    plan_count,
    resume,
)
from rlm.cli import main
from rlm.cli.options import price_of
from rlm.options.options import CountOptions
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer, ScriptedModel, judge_script, judge_server

pytestmark = pytest.mark.anyio

CORPUS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(100)]
PRICE = Price(input=Decimal("0.40"), output=Decimal("1.60"), cache_read=Decimal("0.04"))


def fire(text: str) -> bool:
    return "fire" in text


def model() -> ScriptedModel:
    return ScriptedModel(judge_script(fire))


@pytest.mark.case("K8-1")
async def test_cached_tokens_cost_what_the_price_says_of_them(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 17_111,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 17_102},
    }
    async with FakeServer(Completion(text='{"1":"yes"}', usage=usage)) as server:
        spec = f"openai+{server.base_url}:any"
        outcome = await count("fire?", [("a", "a fire")], model=spec, prices=PRICE, passes=1)
    cost = (9 * Decimal("0.40") + 17_102 * Decimal("0.04") + 10 * Decimal("1.60")) / 1_000_000
    assert outcome.receipts.totals.cost == cost
    assert outcome.receipts.totals.unpriced == 0


@pytest.mark.case("K8-5")
async def test_a_model_without_a_price_is_unpriced_and_not_free(tmp_path: Path) -> None:
    prices = PriceTable({"another": PRICE})
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        outcome = await count("fire?", CORPUS[:8], model=spec, prices=prices, passes=1)
    totals = outcome.receipts.totals
    assert (totals.cost, totals.unpriced) == (Decimal(0), 1)


@pytest.mark.parametrize("prices", [PRICE, PriceTable({"scripted": PRICE})])
async def test_a_run_remembers_its_price(prices: Price | PriceTable, tmp_path: Path) -> None:
    """No object has to be given again, and the bound of USD holds for all sessions together."""
    run, caps = tmp_path / "run", Caps(usd=Decimal("0.004"))
    first = await count("fire?", CORPUS, model=model(), run=run, prices=prices, caps=caps)
    assert isinstance(first, Incomplete)
    assert "prices" not in Manifest.load(run).objects
    paid = first.receipts.totals.cost
    assert 0 < paid <= caps.usd
    second = await resume(run, model=model())
    assert isinstance(second, Incomplete)
    assert paid <= second.receipts.totals.cost <= caps.usd
    assert second.receipts.totals.unpriced == 0
    last = await resume(run, model=model(), caps=Caps())
    assert isinstance(last, Completed)
    assert last.receipts.totals.cost > caps.usd


async def test_a_run_remembers_its_limits(tmp_path: Path) -> None:
    """A call that the limit on tokens can never let through is refused, in later sessions too."""
    run = tmp_path / "run"
    few = Limits(rpm=1e6, tpm=500)
    plan = await plan_count("fire?", CORPUS[:8], model=model(), limits=few)
    assert (plan.calls, plan.load.refused) == (0, 16)
    asked = model()
    first = await count("fire?", CORPUS[:8], model=asked, run=run, limits=few)
    second = await resume(run, model=asked)
    assert isinstance(first, Incomplete)
    assert isinstance(second, Incomplete)
    assert asked.calls == 0
    third = await resume(run, model=asked, limits=Limits(tpm=1e6))
    assert isinstance(third, Completed)
    assert third.receipts.options["limits"] == "1,000,000 tokens a minute"


async def test_the_time_of_a_dry_run_follows_from_the_limits() -> None:
    plan = await plan_count("fire?", CORPUS, model=model(), limits=Limits(rpm=13), latency=0.001)
    assert plan.seconds is not None
    assert plan.seconds.low == pytest.approx(120)
    plan = await plan_count("fire?", CORPUS, model=model(), limits=Limits(tpm=5_000), latency=0.001)
    assert plan.seconds is not None
    tokens = plan.input_tokens + plan.output_tokens.low
    assert plan.seconds.low == pytest.approx(tokens / 5_000 * 60)


async def test_a_run_from_elsewhere_bounds_nothing_here(tmp_path: Path) -> None:
    run = tmp_path / "run"
    caps = Caps(usd=Decimal(10_000))
    await count("fire?", CORPUS, model=model(), run=run, caps=caps, prices=PRICE)
    Manifest.load(run).model_copy(update={"mark": "0" * 32}).save(run)
    outcome = await resume(run, model=model())
    assert "10 USD" in str(outcome.receipts.options["bounds"])


@pytest.mark.parametrize(
    "options",
    [
        {"limits": Limits(rpm=1)},
        {"prices": PRICE},
        {"prices": PRICE, "terms": ("fire",)},
        {"prices": 3, "model": model()},
        {"limits": 3, "model": model()},
    ],
)
def test_what_has_no_effect_or_is_none_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CountOptions.of_record({}, **options)


def test_what_a_manifest_holds_is_checked() -> None:
    records: tuple[dict[str, object], ...] = (
        {"prices": {"each": {"input": "-1", "output": "2"}}},
        {"prices": {"by name": {"x": {"input": "many", "output": "2"}}}},
        {"prices": {}},
        {"limits": {"rps": 3}},
        {"caps": {"calls": 1}},
    )
    for record in records:
        with pytest.raises(ValidationError):
            CountOptions.of_record({"model": "openai:x", **record})


def test_a_price_is_read_by_its_places() -> None:
    assert price_of("0.40, 1.60,0.04") == PRICE
    assert price_of("0,0,1,2") == Price(
        input=Decimal(0), output=Decimal(0), cache_read=Decimal(1), cache_write=Decimal(2)
    )
    assert price_of(None) is None


@pytest.mark.parametrize(
    "text", ["", "1", "1,2,3,4,5", "a,b", "1,-2", "nan,1", "1,inf", "1;2", ","]
)
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        price_of(text)


def test_a_price_on_the_command_line_is_charged_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    Path("t.csv").write_text("id,text\n1,a fire\n2,calm\n", encoding="utf-8")
    with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        asked = ["count", "t.csv", "fire?", "--model", spec, "--price", "1000,2000"]
        assert main([*asked, "--dry-run", "--max-usd", "0.5"]) == 0
        out = capsys.readouterr().out
        assert re.search(r"cost: 0\.\d+ to 4\.\d+ USD", out)
        assert "that of 0.5 USD would end the count" in out
        limits = ["--rpm", "6000", "--tpm", "6000000"]
        assert main([*asked, *limits, "--max-usd", "100", "--run", "run"]) == 0
        assert " USD" in capsys.readouterr().out
    options = Manifest.load(Path("run")).options
    assert options["limits"] == {"rpm": 6000.0, "tpm": 6000000.0}
    assert options["prices"] == {
        "each": {"input": "1000", "output": "2000", "cache_read": None, "cache_write": None}
    }
