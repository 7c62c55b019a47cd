"""A dry run: what a count would take, held against what the count then takes."""

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from corpus.events import SourceRead
from executors.events import Event
from executors.journal.lock import RunLock
from executors.messages import ModelReply, ModelRequest
from executors.models.fakes.acts import Completion
from executors.models.fakes.scripted import Turn
from rlm import (
    Caps,
    Completed,
    Incomplete,
    Limits,
    OneOf,
    Price,
    PriceTable,
    RunDirError,
    Tally,
    ValidationError,
    count,
    plan_count,
    resume,
)
from rlm.runs.manifest import Manifest
from rlm.testing import FakeServer, ScriptedModel, judge_script, judge_server

pytestmark = pytest.mark.anyio

Pairs = list[tuple[str, str]]
WORDS = ("fire", "calm", "señor", "river", "a", "of", "refund", "\n", '"quoted"', "日本", "<|x|>")


def text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


def short(rng: random.Random) -> Pairs:
    return [(f"r{n}", text(rng, rng.randint(3, 60))) for n in range(300)]


def long(rng: random.Random) -> Pairs:
    """Many a record is read in parts, and some are one part said many times."""
    own = [(f"r{n}", text(rng, rng.choice((20, 900, 4_000)))) for n in range(40)]
    return [*own, *((f"s{n}", "the same again and again. " * 700) for n in range(3))]


def repeated(rng: random.Random) -> Pairs:
    texts = [text(rng, 12) for _ in range(30)]
    return [(f"r{n}", "" if n % 50 == 0 else rng.choice(texts)) for n in range(600)]


def fire(text: str) -> bool:
    return "fire" in text


def model() -> ScriptedModel:
    return ScriptedModel(judge_script(fire))


CORPUS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(100)]


@pytest.mark.parametrize("make", [short, long, repeated])
@pytest.mark.parametrize("quotes", [False, True])
async def test_calls_and_input_tokens_are_those_of_the_count(
    make: Callable[[random.Random], Pairs], quotes: bool, tmp_path: Path
) -> None:
    """Within a tenth, as the server counts."""
    pairs = make(random.Random(7))
    async with FakeServer(judge_server(fire)) as server:
        spec = f"openai+{server.base_url}:any"
        plan = await plan_count("fire?", pairs, model=spec, quotes=quotes, window_tokens=2_000)
        assert server.accepted == 0
        outcome = await count(
            "fire?", pairs, model=spec, quotes=quotes, window_tokens=2_000, run=tmp_path / "run"
        )
        assert isinstance(outcome, Completed)
        paid = outcome.receipts.totals
        assert plan.calls == paid.calls == server.requests
        assert plan.input_tokens == pytest.approx(paid.input, rel=0.1)
        assert plan.output_tokens.low <= paid.output <= plan.output_tokens.high
        assert plan.distinct == len({text for _, text in pairs if text})


async def test_a_oneof_and_a_described_question_are_counted_too(tmp_path: Path) -> None:
    question = OneOf(text="how hot?", labels=("very hot indeed", "cold"))
    script = judge_server(lambda text: "very hot indeed" if fire(text) else "cold")
    async with FakeServer(script) as server:
        spec = f"openai+{server.base_url}:any"
        plan = await plan_count(question, CORPUS, model=spec, description="heat", passes=3)
        outcome = await count(
            question, CORPUS, model=spec, description="heat", passes=3, run=tmp_path / "run"
        )
        paid = outcome.receipts.totals
        assert (plan.calls, plan.input_tokens) == (paid.calls, paid.input)
        assert plan.output_tokens.low <= paid.output <= plan.output_tokens.high


async def test_a_judge_that_asks_of_each_text_is_counted_too(tmp_path: Path) -> None:
    top = [{"token": t, "logprob": p, "bytes": None} for t, p in (("yes", -0.2), ("no", -2.0))]
    script = Completion(text="yes", logprobs=[{**top[0], "top_logprobs": top}])
    async with FakeServer(script) as server:
        spec = f"openai+{server.base_url}:any"
        plan = await plan_count("fire?", CORPUS, model=spec, judge="logprob", window=8)
        outcome = await count(
            "fire?", CORPUS, model=spec, judge="logprob", window=8, run=tmp_path / "run"
        )
    paid = outcome.receipts.totals
    assert (plan.calls, plan.input_tokens) == (paid.calls, paid.input) == (100, paid.input)
    assert plan.output_tokens.low == plan.output_tokens.high == paid.output


async def test_windows_that_are_too_long_together_are_counted_in_halves() -> None:
    limits = Limits(tpm=1_550)
    plan = await plan_count("fire?", CORPUS[:16], model=model(), limits=limits, passes=1)
    assert (plan.calls, plan.load.windows, plan.load.refused) == (4, 2, 0)


async def test_no_key_no_socket_and_no_call_is_needed(tmp_path: Path) -> None:
    """The key of this model is not set, and nothing may leave this machine."""
    plan = await plan_count("fire?", CORPUS, model="openai:gpt-x")
    assert (plan.calls, plan.judge) == (26, "chat openai:gpt-x")
    scripted = model()
    await plan_count("fire?", CORPUS, model=scripted)
    assert scripted.calls == 0


async def test_a_temporary_place_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nobodys_home: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plan = await plan_count("fire?", CORPUS, model=model())
    assert plan.run is None
    with pytest.raises(ValueError, match="broken"):
        await plan_count("fire?", broken(), model=model())
    assert list(tmp_path.iterdir()) == []
    assert not nobodys_home.exists()


def broken() -> Iterator[tuple[str, str]]:
    yield CORPUS[0]
    raise ValueError("broken")


# ---------------------------------------------------------------- runs


async def test_a_named_run_keeps_the_records_and_is_counted_from_them(tmp_path: Path) -> None:
    """What can be read once only, as a pipe, is read once only."""
    run = tmp_path / "run"
    plan = await plan_count("fire?", iter(CORPUS), model=model(), run=run)
    assert plan.run == str(run)
    assert Manifest.load(run).sessions == ()
    asked = model()
    outcome = await resume(run, model=asked)
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.result, Tally)
    assert outcome.result.records == 100
    assert asked.calls == plan.calls == 26
    assert len(Manifest.load(run).sessions) == 1


async def test_a_named_run_that_was_only_looked_at_is_looked_at_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await plan_count("fire?", CORPUS, model=model(), run=run)
    plan = await plan_count("fire?", CORPUS[:50], model=model(), run=run)
    outcome = await resume(run, model=model())
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.result, Tally)
    assert plan.records == outcome.result.records == 50


async def test_what_a_run_has_judged_and_paid_is_taken_into_account(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = await count("fire?", CORPUS, model=model(), run=run, caps=Caps(calls=10))
    assert isinstance(first, Incomplete)
    before = manifest(run)
    plan = await plan_count("fire?", CORPUS, model=model(), run=run, caps=Caps(calls=20))
    assert manifest(run) == before
    assert (plan.calls, plan.restored, plan.spent.calls) == (16, 80, 10)
    assert [bound.name for bound in plan.bounds if bound.standing == "halts"] == ["calls"]
    assert plan.halted_by is not None
    asked = model()
    await resume(run, model=asked, caps=Caps(calls=100))
    assert asked.calls == plan.calls


async def test_a_grown_corpus_is_planned_without_a_change_to_its_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", CORPUS, model=model(), run=run)
    before = manifest(run)
    grown = [("new", "a new fire"), *CORPUS]
    plan = await plan_count("fire?", grown, model=model(), run=run)
    assert (plan.records, plan.calls, plan.restored) == (101, 2, 200)
    assert manifest(run) == before
    again = await resume(run, model=model())
    assert isinstance(again, Completed)
    assert isinstance(again.result, Tally)
    assert again.result.records == 100


async def test_what_was_unusable_is_planned_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    good = judge_script(fire)

    def script(request: ModelRequest) -> Turn:
        refused = "calm 5" in request.messages[-1].content
        return ModelReply(text="", stop="refusal") if refused else good(request)

    first = await count(
        "fire?", CORPUS[:10], model=ScriptedModel(script), run=run, passes=1, window=1
    )
    assert isinstance(first, Incomplete)
    plan = await plan_count("fire?", CORPUS[:10], model=model(), run=run, passes=1, window=1)
    asked = model()
    await resume(run, model=asked)
    assert asked.calls == plan.calls == 1


async def test_answers_that_a_killed_session_paid_for_are_free(tmp_path: Path) -> None:
    """What it judged was not written down yet."""
    run = tmp_path / "run"
    await count("fire?", CORPUS, model=model(), run=run)
    (segment,) = (run / "journal").iterdir()
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(line for line in lines if line[2:3] != b"n"))
    (run / "index.sqlite").unlink()
    plan = await plan_count("fire?", CORPUS, model=model(), run=run)
    assert (plan.calls, plan.load.filed, plan.restored) == (0, 26, 0)


async def test_another_question_and_a_run_in_use_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", CORPUS, model=model(), run=run)
    with pytest.raises(RunDirError, match="asks 'fire\\?'"):
        await plan_count("smoke?", CORPUS, model=model(), run=run)
    lock = RunLock(run)
    lock.take()
    try:
        with pytest.raises(RunDirError, match="in use"):
            await plan_count("fire?", CORPUS, model=model(), run=run)
    finally:
        lock.release()


def manifest(run: Path) -> bytes:
    return (run / "manifest.json").read_bytes()


# ---------------------------------------------------------------- money, time, bounds


@pytest.mark.case("K8-5")
async def test_an_unknown_price_is_unknown_and_a_known_one_is_a_range() -> None:
    async with FakeServer() as server:
        spec = f"openai+{server.base_url}:any"
        assert (await plan_count("fire?", CORPUS, model=spec)).usd is None
        prices = PriceTable({"any": Price(input=Decimal(2), output=Decimal(10))})
        plan = await plan_count("fire?", CORPUS, model=spec, prices=prices)
        assert server.accepted == 0
    assert plan.usd is not None
    least = (plan.input_tokens * 2 + plan.output_tokens.low * 10) / Decimal(1_000_000)
    most = (plan.input_tokens * 2 + plan.output_tokens.high * 10) / Decimal(1_000_000)
    assert (plan.usd.low, plan.usd.high) == (least, most)
    free = await plan_count("fire?", CORPUS, model=model())
    assert free.usd is not None
    assert free.usd.high == 0


@pytest.mark.case("S30")
async def test_the_bound_that_would_end_the_count_is_named() -> None:
    plan = await plan_count("fire?", CORPUS, model=model(), caps=Caps(calls=5, tokens=9_000))
    assert [bound.standing for bound in plan.bounds] == ["halts", "halts", "within", "within"]
    assert plan.halted_by is not None
    assert plan.halted_by.name == "calls"
    doubtful = await plan_count("fire?", CORPUS, model=model(), caps=Caps(tokens=20_000))
    assert [bound.standing for bound in doubtful.bounds][1] == "may halt"
    assert doubtful.halted_by is None


async def test_the_time_follows_from_the_calls_in_flight_and_the_guess() -> None:
    plan = await plan_count("fire?", CORPUS, model=model(), concurrency=4, latency=3.0)
    assert plan.seconds is not None
    assert plan.seconds.low == 2 * 4 * 3.0  # two passes of 13 windows, 4 at once


# ---------------------------------------------------------------- judges that ask nobody


async def test_a_rule_asks_nothing_and_costs_nothing() -> None:
    heard: list[Event] = []
    plan = await plan_count("fire?", CORPUS, terms=("fire",), on_event=heard.append)
    assert (plan.asks, plan.calls, plan.seconds) == (False, 0, None)
    assert any(isinstance(event, SourceRead) for event in heard)


async def test_an_option_that_is_wrong_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ValidationError):
        await plan_count("fire?", broken(), model=model(), passes=0)


async def test_a_plan_as_text_is_what_a_dry_run_prints() -> None:
    price = Price(input=Decimal(1), output=Decimal(2))
    plan = await plan_count("fire?", CORPUS, model=model(), prices=price)
    lines = str(plan).splitlines()
    assert lines[0] == "dry run: nothing was asked, nothing was paid"
    assert f"  calls: {plan.calls} for 26 windows of up to 8 in 2 passes" in str(plan)
    assert repr(plan).startswith(f"CountPlan(100 records, {plan.calls} calls, ")
    assert len(repr(plan)) < 100


async def test_a_notebook_shows_a_plan_as_text() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty")
    plan = await plan_count("fire?", CORPUS, terms=("fire",))
    assert pretty.pretty(plan) == str(plan)
    assert repr(plan) == "CountPlan(100 records, no model is asked)"
