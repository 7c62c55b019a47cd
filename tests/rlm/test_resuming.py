"""Resume: a run goes on where it stopped, and pays nothing twice."""

from decimal import Decimal
from pathlib import Path

import pytest

from executors.journal.lines import Answered, Noted, read_line
from executors.messages import ModelReply, ModelRequest
from rlm import (
    Caps,
    Completed,
    ConfigError,
    Incomplete,
    OneOf,
    RunDirError,
    Tally,
    UsageError,
    count,
)
from rlm.counting import CountOutcome
from rlm.recursion import RecurseOutcome
from rlm.resuming import resume
from rlm.runs.manifest import Manifest
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio

Pairs = list[tuple[str, str]]


def corpus(size: int) -> Pairs:
    return [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(size)]


def fire(text: str) -> bool:
    return "fire" in text


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(fire))


def tally_of(outcome: CountOutcome | RecurseOutcome) -> Tally:
    best = outcome.result if isinstance(outcome, Completed) else outcome.best
    assert isinstance(best, Tally)
    return best


def rows(outcome: CountOutcome | RecurseOutcome) -> list[tuple[str, str, str]]:
    return [(row.id, row.state, row.reason) for row in tally_of(outcome).rows()]


async def test_a_finished_run_is_counted_again_without_a_call(tmp_path: Path) -> None:
    first = await count("fire?", corpus(100), model=judge(), run=tmp_path / "run")
    again = judge()
    second = await resume(tmp_path / "run", model=again)
    assert again.calls == 0
    assert rows(second) == rows(first)
    assert second.receipts.totals.calls == first.receipts.totals.calls == 26


async def test_other_votes_are_counted_without_a_call(tmp_path: Path) -> None:
    seen: set[str] = set()

    def once(text: str) -> bool:
        """Yes at the first look alone, so that the passes disagree."""
        first = text not in seen
        seen.add(text)
        return first

    run = tmp_path / "run"
    model = ScriptedModel(judge_script(once))
    first = await count("fire?", corpus(20), model=model, run=run)
    again = judge()
    second = await resume(run, model=again, votes="all")
    assert again.calls == 0
    assert (tally_of(first).count, tally_of(second).count) == (20, 0)


@pytest.mark.case("S11")
async def test_a_grown_and_a_shuffled_corpus_pay_for_what_is_new_alone(tmp_path: Path) -> None:
    run, old = tmp_path / "run", corpus(1_000)
    await count("fire?", old, model=judge(), run=run)
    model = judge()
    shuffled = await count("fire?", list(reversed(old)), model=model, run=run)
    assert model.calls == 0
    grown = await count("fire?", [("new", "a new fire"), *old], model=model, run=run)
    assert model.calls == 2  # one record, each pass
    assert tally_of(grown).count == tally_of(shuffled).count + 1
    assert next(iter(tally_of(grown).matched_ids)) == "new"


async def test_an_edited_record_is_judged_anew_and_no_other(tmp_path: Path) -> None:
    run, old = tmp_path / "run", corpus(50)
    await count("fire?", old, model=judge(), run=run)
    model = judge()
    edited = [*old[:3], ("r3", "now a fire"), *old[4:]]
    outcome = await count("fire?", edited, model=model, run=run)
    assert model.calls == 2
    assert "r3" in list(tally_of(outcome).matched_ids)


async def test_a_halted_run_goes_on_under_a_higher_bound(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = judge()
    first = await count("fire?", corpus(100), model=model, run=run, caps=Caps(calls=10))
    assert isinstance(first, Incomplete)
    assert first.blocker == "halted"
    assert model.calls == 10
    again = judge()
    same = await resume(run, model=again)
    assert isinstance(same, Incomplete)  # the bound holds for all sessions together
    assert again.calls == 0
    second = await resume(run, model=again, caps=Caps(calls=100))
    assert isinstance(second, Completed)
    assert again.calls == 16
    assert second.receipts.totals.calls == 26
    whole = await count("fire?", corpus(100), model=judge(), run=tmp_path / "other")
    assert rows(second) == rows(whole)


@pytest.mark.case("S14", "K14-14")
async def test_what_could_not_be_read_or_was_refused_is_asked_again(tmp_path: Path) -> None:
    refusal = ModelReply(text="no", stop="refusal")
    broken = [ModelReply(text=text, stop="end") for text in ("", "I cannot say.")] + [refusal]
    good = judge_script(fire)

    def script(request: ModelRequest) -> ModelReply | str | Exception:
        return broken.pop() if broken else good(request)

    run = tmp_path / "run"
    outcome: CountOutcome | RecurseOutcome
    outcome = await count("fire?", corpus(1), model=ScriptedModel(script), run=run, passes=1)
    assert isinstance(outcome, Incomplete)
    sessions = 1
    while not tally_of(outcome).complete and sessions < 9:
        outcome = await resume(run, model=ScriptedModel(script))
        sessions += 1
    assert tally_of(outcome).count == 1
    assert sessions == 3  # a refusal; prose and an empty repair; then all is well


async def test_a_oneof_run_goes_on_with_its_labels(tmp_path: Path) -> None:
    run = tmp_path / "run"
    question = OneOf(text="how hot?", labels=("hot", "cold"))
    script = judge_script(lambda text: "hot" if fire(text) else "cold")
    first = await count(question, corpus(20), model=ScriptedModel(script), run=run)
    again = ScriptedModel(script)
    second = await resume(run, model=again)
    assert again.calls == 0
    assert dict(tally_of(second).labels) == dict(tally_of(first).labels) == {"hot": 3, "cold": 17}


async def test_a_run_about_another_question_is_refused(tmp_path: Path) -> None:
    await count("fire?", corpus(8), model=judge(), run=tmp_path / "run")
    with pytest.raises(RunDirError, match="asks 'fire\\?'"):
        await count("smoke?", corpus(8), model=judge(), run=tmp_path / "run")
    assert len(Manifest.load(tmp_path / "run").sessions) == 1


async def test_a_model_that_was_an_object_has_to_be_given_again(tmp_path: Path) -> None:
    await count("fire?", corpus(8), model=judge(), run=tmp_path / "run")
    with pytest.raises(ConfigError, match="given an object as model"):
        await resume(tmp_path / "run")


async def test_a_directory_without_a_run_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="is no run directory"):
        await resume(tmp_path)


async def test_a_run_of_another_machine_is_asked_for_its_model(tmp_path: Path) -> None:
    """What it names may be anybody's server."""
    run = tmp_path / "run"
    await count("fire?", corpus(8), terms=("fire",), run=run)
    manifest = Manifest.load(run)
    theirs: dict[str, object] = {"model": "openai+http://127.0.0.1:9/v1:x", "terms": []}
    options = {**manifest.options, **theirs}
    for mark in ("0" * 32, "é" * 16):
        manifest.model_copy(update={"mark": mark, "options": options}).save(run)
        with pytest.raises(ConfigError, match="made elsewhere"):
            await resume(run)
    model = judge()
    assert isinstance(await resume(run, model=model), Completed)
    assert model.calls == 2


async def test_a_rule_run_is_counted_again_from_its_spool(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "text": "a fire"}\n', encoding="utf-8")
    first = await count("fire?", path, terms=("fire",), run=tmp_path / "run")
    path.unlink()
    second = await resume(tmp_path / "run")
    assert rows(second) == rows(first)


async def test_a_further_pass_is_the_only_one_that_is_paid(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", corpus(80), model=judge(), run=run)
    model = judge()
    await resume(run, model=model, passes=3)
    assert model.calls == 10


async def test_what_earlier_sessions_spent_counts_on_the_bounds(tmp_path: Path) -> None:
    from rlm import Price, PriceTable

    prices = PriceTable({"scripted": Price(input=Decimal(1), output=Decimal(1))})
    run = tmp_path / "run"
    caps = Caps(usd=Decimal("0.02"))
    first = await count("fire?", corpus(400), model=judge(), run=run, caps=caps, prices=prices)
    assert isinstance(first, Incomplete)
    model = judge()
    await resume(run, model=model, prices=prices)
    spent = first.receipts.totals.cost
    second = await resume(run, model=model, prices=prices)
    assert second.receipts.totals.cost <= Decimal("0.02")
    assert second.receipts.totals.cost >= spent


async def test_each_verdict_in_the_journal_names_the_calls_about_its_window(
    tmp_path: Path,
) -> None:
    """So that what was said of a record can be found, and forgotten."""
    good = judge_script(fire)
    prose = ["I am not sure what you mean."]

    def script(request: ModelRequest) -> ModelReply:
        found = good(request)
        assert isinstance(found, ModelReply)
        return ModelReply(text=prose.pop(), stop="end") if prose else found

    run = tmp_path / "run"
    await count("fire?", corpus(16), model=ScriptedModel(script), run=run, passes=1)
    (segment,) = (run / "journal").glob("*.jsonl")
    lines = [read_line(line) for line in segment.read_bytes().splitlines()]
    answered = {line.key.hex()[:8] for line in lines if isinstance(line, Answered)}
    named = {line.call for line in lines if isinstance(line, Noted)}
    assert len(answered) == 3  # two windows, one of them asked twice
    assert named == answered


async def test_a_run_goes_on_with_the_labels_that_it_was_given(tmp_path: Path) -> None:
    """Also where one of them is the one that means yes, and where the records are read again."""
    source = tmp_path / "c.csv"
    lines = "".join(f"{id_},{text}\n" for id_, text in corpus(60))
    source.write_text(f"id,text\n{lines}", encoding="utf-8")
    run, labels = tmp_path / "run", {"r0": "cold", "r1": "hot", "r2": "cold"}
    first = await count("fire?", source, model=judge(), run=run, labels=labels, positive="hot")
    found = list(tally_of(first).matched_ids)
    assert found[:2] == ["r1", "r7"]
    again = await resume(run, model=judge())
    assert (rows(again), tally_of(again).labelled) == (rows(first), 3)
    (run / "spool" / "meta.json").unlink()
    third = await resume(run, model=judge())
    assert rows(third) == rows(first)


async def test_a_run_that_was_killed_before_it_kept_its_labels_asks_for_them(
    tmp_path: Path,
) -> None:
    source = tmp_path / "c.csv"
    source.write_text("id,text\na,fire\nb,calm\n", encoding="utf-8")
    run = tmp_path / "run"
    await count("fire?", source, model=judge(), run=run, labels={"b": "yes"})
    (run / "spool" / "meta.json").unlink()
    (run / "labels.json").unlink()
    with pytest.raises(ConfigError, match=r"(?s)before it had kept its labels.*--labels FILE"):
        await resume(run, model=judge())
    outcome = await resume(run, model=judge(), labels={"b": "yes"})
    assert list(tally_of(outcome).matched_ids) == ["a", "b"]


async def test_a_command_that_was_wrong_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    run, records = tmp_path / "run", corpus(40)
    first = await count("fire?", records, model=judge(), run=run, labels={"r1": "yes"})
    before = Manifest.load(run)
    twice = [*records, records[0]]
    with pytest.raises(UsageError, match="repeat an id"):
        await count("fire?", twice, model=judge(), run=run, passes=5, votes="all")
    with pytest.raises(UsageError, match="is labelled"):
        await count("fire?", records, model=judge(), run=run, passes=5, labels={"r2": "perhaps"})
    assert Manifest.load(run) == before
    model = judge()
    again = await resume(run, model=model)
    assert model.calls == 0
    assert rows(again) == rows(first)


@pytest.mark.parametrize("damage", [b"", b"\xa5" * 100, None], ids=["empty", "garbage", "gone"])
async def test_without_its_agenda_a_run_judges_what_has_no_verdict(
    tmp_path: Path, damage: bytes | None
) -> None:
    run, old = tmp_path / "run", corpus(40)
    await count("fire?", old, model=judge(), run=run)
    grown = [*old, *((f"n{n}", f"a new fire {n}") for n in range(40))]
    await count("fire?", grown, model=judge(), run=run, caps=Caps(calls=14))
    (agenda,) = run.glob("agenda-*.npz")
    if damage is None:
        agenda.unlink()
    else:
        agenda.write_bytes(damage)
    model = judge()
    outcome = await resume(run, model=model, caps=Caps(calls=100))
    assert isinstance(outcome, Completed)
    assert model.calls == 6  # 20 in all, of which 14 were paid
    assert tally_of(outcome).count == 46


async def test_a_run_about_other_labels_is_told_by_them(tmp_path: Path) -> None:
    question = OneOf(text="how hot?", labels=("hot", "cold"))
    model = ScriptedModel(judge_script(lambda text: "hot" if fire(text) else "cold"))
    await count(question, corpus(8), model=model, run=tmp_path / "run")
    other = OneOf(text="how hot?", labels=("cold", "hot"))
    with pytest.raises(RunDirError, match=r"(?s)one of 'hot', 'cold'.*one of 'cold', 'hot'"):
        await count(other, corpus(8), model=model, run=tmp_path / "run")
