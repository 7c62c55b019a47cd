"""A count as a whole: one call in, one honest outcome out."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast, get_args

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

import rlm
from executors.endpoint.endpoint import RetryPolicy
from executors.events import CallFinished, Event
from executors.messages import TokenLogprob
from rlm.counting import count_with
from rlm.options.options import CountOptions
from rlm.testing import FakeServer, Fault, ScriptedModel, judge_script, judge_server

pytestmark = pytest.mark.anyio


def on_fire(text: str) -> bool:
    return "fire" in text


def reports(count: int) -> list[tuple[str, str]]:
    """Every seventh report tells of a fire."""
    return [(f"r{n}", f"report {n}: {'a fire' if n % 7 == 0 else 'calm'}") for n in range(count)]


def fires(count: int) -> int:
    return -(-count // 7)


def tally(outcome: rlm.Completed[rlm.Tally] | rlm.Incomplete[rlm.Tally | rlm.Ranking]) -> rlm.Tally:
    match outcome:
        case rlm.Completed():
            return outcome.result
        case rlm.Incomplete():
            assert isinstance(outcome.best, rlm.Tally), outcome.missing
            return outcome.best


async def test_a_count_over_the_wire_is_the_true_count() -> None:
    async with FakeServer(judge_server(on_fire)) as server:
        model = f"openai+{server.base_url}:judge"
        outcome = await rlm.count("Is there a fire?", reports(400), model=model)
        sent = server.requests
    assert isinstance(outcome, rlm.Completed)
    assert outcome.result.count == fires(400)
    assert list(outcome.result.matched_ids)[:3] == ["r0", "r7", "r14"]
    totals = outcome.receipts.totals
    assert totals.calls == sent == 2 * 400 // 8
    assert totals.tokens > 0
    assert totals.unpriced == totals.calls
    assert outcome.receipts.path.exists()


@pytest.mark.case("K6-1", "K6-2", "K6-4", "K6-5", "K6-7", "K3-7", "K3-8", "K3-11")
@pytest.mark.parametrize("fault", get_args(Fault))
async def test_no_fault_of_a_judge_makes_a_wrong_number_without_a_flag(fault: Fault) -> None:
    script = judge_script(on_fire, lambda number: fault if number % 3 == 0 else None)
    options = CountOptions(
        model=ScriptedModel(script), passes=1, retry=RetryPolicy(attempts=1), concurrency=4
    )
    result = tally(await count_with("Is there a fire?", reports(96), options))
    low, high = result.coverage
    assert low <= fires(96) <= high
    assert sum(result.states.values()) == 96
    flagged = result.states["unresolved"] + result.states["unsure"]
    assert result.count == fires(96) or flagged


async def test_28_of_200_failing_calls_leave_an_incomplete_with_its_range() -> None:
    script = judge_script(
        on_fire, lambda number: "fail" if number % 7 == 3 and number < 196 else None
    )
    options = CountOptions(
        model=ScriptedModel(script), passes=1, window=4, retry=RetryPolicy(attempts=1)
    )
    outcome = await count_with("Is there a fire?", reports(800), options)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "unresolved-records"
    result = tally(outcome)
    assert result.states["unresolved"] == 28 * 4
    assert result.coverage == (result.count, result.count + 28 * 4)
    assert result.coverage[0] <= fires(800) <= result.coverage[1]
    assert outcome.receipts.totals.failed == 28
    why = "the call failed: server-fault: the scripted model failed, as told"
    assert outcome.missing == (f"112 record(s) unresolved: {why}",)


@pytest.mark.case("S32", "K8-14")
async def test_a_cap_of_ten_calls_sends_ten_and_keeps_their_answers() -> None:
    model = ScriptedModel(judge_script(on_fire), latency=0.001)
    outcome = await rlm.count(
        "fire?", reports(2_000), model=model, caps=rlm.Caps(calls=10), concurrency=64, passes=1
    )
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "halted"
    assert "calls bound" in outcome.missing[0]
    assert model.calls == 10
    result = tally(outcome)
    assert result.states["matched"] + result.states["not_matched"] == 80


async def test_a_priced_run_never_passes_its_cap_in_usd() -> None:
    prices = rlm.PriceTable({"scripted": rlm.Price(input=Decimal(100), output=Decimal(100))})
    outcome = await rlm.count(
        "fire?",
        reports(2_000),
        model=ScriptedModel(judge_script(on_fire)),
        prices=prices,
        caps=rlm.Caps(usd=Decimal("0.5")),
    )
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "halted"
    assert Decimal(0) < outcome.receipts.totals.cost <= Decimal("0.5")


@pytest.mark.case("R-076", "K7-23")
async def test_an_empty_corpus_is_incomplete_and_asks_nobody() -> None:
    model = ScriptedModel(())
    outcome = await rlm.count("fire?", list[rlm.Record](), model=model)
    assert isinstance(outcome, rlm.Incomplete)
    assert (outcome.blocker, outcome.best) == ("empty-corpus", None)


@pytest.mark.case("K7-19")
async def test_a_corpus_without_text_asks_nobody_and_says_empty() -> None:
    outcome = await rlm.count("fire?", [("a", ""), ("b", " \n")], model=ScriptedModel(()))
    assert tally(outcome).states["empty"] == 2


@pytest.mark.case("R-079")
async def test_a_source_that_says_stop_ends_the_run_as_halted() -> None:
    def source() -> Iterator[tuple[str, str]]:
        yield "a", "fire"
        raise rlm.Halted(bound="patience", scope="caller", limit="1 record")

    outcome = await rlm.count("fire?", source(), model=ScriptedModel(()))
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "halted"


@pytest.mark.case("R-077")
async def test_an_async_source_is_counted_like_a_list() -> None:
    async def source() -> list[tuple[str, str]]:
        await anyio.lowlevel.checkpoint()
        return reports(40)

    outcome = await rlm.count("fire?", source, judge=on_fire)
    assert tally(outcome).count == fires(40)


@pytest.mark.case("K6-11", "K6-13")
async def test_duplicate_ids_are_refused_before_any_call_and_leave_no_directory(
    tmp_path: Path,
) -> None:
    """D18."""
    model = ScriptedModel(())
    twins = [("a", "fire"), ("a", "calm")]
    with pytest.raises(rlm.DuplicateIds, match="'a'") as caught:
        await rlm.count("fire?", twins, model=model, run=tmp_path / "run")
    assert "on_duplicate='suffix'" in str(caught.value)
    assert not (tmp_path / "run").exists()
    outcome = await rlm.count(
        "fire?", twins, judge=on_fire, on_duplicate="suffix", run=tmp_path / "run"
    )
    assert tally(outcome).records == 2


async def test_a_run_directory_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text("{}", encoding="utf-8")
    with pytest.raises(rlm.RunDirError, match="holds something already"):
        await rlm.count("fire?", reports(2), judge=on_fire, run=tmp_path)


async def test_what_cannot_work_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    def untouched() -> Iterator[tuple[str, str]]:
        yield from ()
        raise AssertionError("the source was read")

    wrong: list[dict[str, Any]] = [
        {"model": "gpt-x"},
        {"model": "openai:gpt-x", "key_env": "NOT_SET_ANYWHERE"},
        {"judge": "chat"},
        {"judge": "oracle"},
        {"judge": "rule"},
        {"passes": 0},
        {"votes": "most"},
        {"concurrency": True},
    ]
    for options in wrong:
        with pytest.raises(rlm.UsageError):
            await rlm.count("fire?", untouched(), run=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


async def test_receipts_are_a_fold_and_add_up_to_the_token() -> None:
    events: list[Event] = []
    outcome = await rlm.count(
        "fire?",
        reports(200),
        model=ScriptedModel(judge_script(on_fire)),
        on_event=events.append,
    )
    paid = [e for e in events if isinstance(e, CallFinished) and e.source == "paid"]
    totals = outcome.receipts.totals
    assert totals.calls == len(paid)
    assert totals.input == sum(e.usage.input or 0 for e in paid)
    assert sum(node.totals.tokens for node in outcome.receipts.nodes) == totals.tokens
    assert set(outcome.receipts.roles) == {"judge"}
    again = rlm.Receipts.load(outcome.receipts.directory)
    assert again == outcome.receipts


async def test_every_line_of_the_event_log_is_one_json_object() -> None:
    outcome = await rlm.count("fire?", reports(20), judge=on_fire)
    raw = (outcome.receipts.directory / "events.jsonl").read_bytes()
    kinds = [json.loads(line)["kind"] for line in raw.split(b"\n")[:-1]]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_finished"
    assert kinds.count("run_finished") == 1


async def test_a_cancelled_count_leaves_a_receipt_of_what_was_paid(tmp_path: Path) -> None:
    started = anyio.Event()

    def script(request: rlm.ModelRequest) -> rlm.ModelReply:
        started.set()
        reply = judge_script(on_fire)(request)
        assert isinstance(reply, rlm.ModelReply)
        return reply

    async with anyio.create_task_group() as group:

        async def run() -> None:
            await rlm.count(
                "fire?",
                reports(5_000),
                model=ScriptedModel(script, latency=0.002),
                run=tmp_path / "run",
            )

        group.start_soon(run)
        await started.wait()
        group.cancel_scope.cancel()
    receipts = rlm.Receipts.load(tmp_path / "run")
    assert receipts.blocker == "cancelled"
    assert receipts.result["records"] == 5_000
    assert rlm.load_result(tmp_path / "run").states["unresolved"] > 0


async def test_a_tally_can_be_read_again_from_its_run(tmp_path: Path) -> None:
    outcome = await rlm.count("fire?", reports(50), judge=on_fire, run=tmp_path / "run")
    again = rlm.load_result(tmp_path / "run")
    assert list(again.rows()) == list(tally(outcome).rows())


async def test_a_persons_label_overrides_any_judge_and_says_so() -> None:
    outcome = await rlm.count("fire?", reports(10), judge=on_fire, labels={"r1": "yes", "r0": "no"})
    result = tally(outcome)
    assert list(result.matched_ids) == ["r1", "r7"]
    assert result.labelled == 2
    assert result.reason(1) == "labelled by a person"


async def test_one_of_several_labels_is_counted_for_each() -> None:
    question = rlm.OneOf(text="What is it?", labels=("fire", "calm"))

    def which(text: str) -> str:
        return "fire" if on_fire(text) else "calm"

    model = ScriptedModel(judge_script(which))
    result = tally(await rlm.count(question, reports(70), model=model))
    assert result.labels == {"fire": 10, "calm": 60}
    assert result.count == 70
    assert list(result.ids_labelled("fire"))[:2] == ["r0", "r7"]


@pytest.mark.case("K12-8", "K12-11")
async def test_windows_shrink_to_what_the_model_can_hold() -> None:
    texts = [(f"r{n}", "fire and smoke " * 40) for n in range(16)]
    model = ScriptedModel(judge_script(on_fire), context_window=2_000)
    assert tally(await rlm.count("fire?", texts, model=model)).count == 16


class Yes(ScriptedModel):
    """Says yes, and how sure it is."""

    def __init__(self) -> None:
        token = TokenLogprob(token="yes", logprob=-0.1, top=(("yes", -0.1), ("no", -2.4)))
        reply = rlm.ModelReply(
            text="yes", stop="end", usage=rlm.Usage(input=9, output=1), token_logprobs=(token,)
        )
        super().__init__(lambda _: reply)

    @property
    def info(self) -> rlm.ModelInfo:
        return replace(super().info, logprobs=True)


async def test_token_probabilities_alone_state_no_number() -> None:
    """D19."""
    options = CountOptions(model=Yes(), judge="logprob", passes=1)
    outcome = await count_with("fire?", reports(4), options)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "uncalibrated-judge"
    assert isinstance(outcome.best, rlm.Ranking)
    assert next(outcome.best.rows()).score == pytest.approx(0.909, abs=0.01)


class Letters:
    """An encoder that sees letters; fast, exact and good enough to teach."""

    name = "letters"
    version = "1"
    dimensions = 26
    max_words = 60

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        letters = [chr(97 + n) for n in range(26)]
        rows = np.array([[t.lower().count(x) for x in letters] for t in texts], dtype=np.float32)
        unit: NDArray[np.float32] = rows / np.maximum(
            np.linalg.norm(rows, axis=1, keepdims=True), 1e-9
        )
        return unit

    def close(self) -> None:
        pass


async def test_an_encoder_without_labels_ranks_and_states_no_count() -> None:
    """D19."""
    outcome = await rlm.count("a fire", reports(30), encoder=Letters(), cache=False)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "uncalibrated-judge"
    ranking = outcome.best
    assert isinstance(ranking, rlm.Ranking)
    assert next(ranking.rows()).id in {f"r{n}" for n in range(0, 30, 7)}


async def test_labels_teach_the_encoder_and_its_quality_is_said(tmp_path: Path) -> None:
    labels = {f"r{n}": "yes" if n % 7 == 0 else "no" for n in range(60)}
    outcome = await rlm.count(
        "fire?",
        reports(140),
        encoder=Letters(),
        labels=labels,
        cache=False,
        run=tmp_path / "run",
    )
    result = tally(outcome)
    assert result.count == fires(140)
    assert result.expected == pytest.approx(fires(140), abs=3)
    assert any("cross-validated on 60 labels" in note for note in result.notes)
    assert (tmp_path / "run" / "head.json").exists()


async def test_labels_come_from_a_column_too(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for id_, text in reports(70):
            truth = ("arson" if on_fire(text) else "none") if int(id_[1:]) < 50 else None
            file.write(json.dumps({"id": id_, "text": text, "truth": truth}) + "\n")
    outcome = await rlm.count(
        "fire?", path, encoder=Letters(), labels="truth", positive="arson", cache=False
    )
    result = tally(outcome)
    assert (result.count, result.labelled) == (10, 50)


async def test_too_few_labels_say_what_is_missing() -> None:
    with pytest.raises(rlm.LabelsError, match="more"):
        await rlm.count("fire?", reports(30), encoder=Letters(), labels={"r0": "yes"}, cache=False)


async def test_a_count_can_be_awaited_twice_with_the_same_model() -> None:
    model = ScriptedModel(judge_script(on_fire))
    for _ in range(2):
        assert tally(await rlm.count("fire?", reports(20), model=model)).count == fires(20)


@pytest.mark.case("K13-1")
def test_the_sync_twin_counts_without_a_loop_of_the_callers() -> None:
    try:
        assert tally(rlm.count_sync("fire?", reports(20), judge=on_fire)).count == fires(20)
    finally:
        rlm.close()


async def test_an_empty_record_stays_empty_whoever_labelled_it() -> None:
    outcome = await rlm.count(
        "fire?", [("a", ""), ("b", "calm")], judge=on_fire, labels={"a": "yes", "b": "yes"}
    )
    result = tally(outcome)
    assert (result.states["empty"], list(result.matched_ids), result.labelled) == (1, ["b"], 1)


async def test_labels_that_name_no_record_are_refused_with_both_spellings() -> None:
    with pytest.raises(rlm.LabelsError, match="none names a record") as caught:
        await rlm.count("fire?", reports(3), encoder=Letters(), labels={"T-1": "yes"}, cache=False)
    assert "'T-1'" in str(caught.value)
    assert "'r0'" in str(caught.value)


async def test_a_text_that_is_labelled_often_is_taught_once_and_never_tests_itself() -> None:
    """Random labels on distinct texts teach nothing; copies of them must not seem to."""
    texts = [f"{'abcdefghijklmnop'[n % 16]}{'qrstuvwxyz'[n % 10]} report" for n in range(40)]
    copies = [(f"r{n}", texts[n % 40]) for n in range(160)]
    labels = {id_: "yes" if int(id_[1:]) % 40 * 7 % 11 < 5 else "no" for id_, _ in copies}
    outcome = await rlm.count("?", copies, encoder=Letters(), labels=labels, cache=False)
    notes = " ".join(tally(outcome).notes)
    assert "cross-validated on 40 labels" in notes
    assert "160 labels stand on 40 distinct texts" in notes


async def test_words_that_the_encoder_did_not_read_are_counted() -> None:
    long = [("x", "fire " * 61), ("y", "calm " * 60)]
    outcome = await rlm.count("fire", [*reports(3), *long], encoder=Letters(), cache=False)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.best is not None
    assert outcome.best.notes == (
        "1 text(s) are longer than the first 60 words, which is what the encoder read",
    )


async def test_labels_are_not_ranked_by_likeness_to_a_question_about_several() -> None:
    question = rlm.OneOf(text="what?", labels=("fire", "calm"))
    with pytest.raises(rlm.LabelsError, match="several labels"):
        await rlm.count(question, reports(3), encoder=Letters(), cache=False)


async def test_a_halted_count_says_how_far_each_record_came() -> None:
    outcome = await rlm.count(
        "fire?",
        [(f"r{n}", f"calm {n}") for n in range(80)],
        model=ScriptedModel(judge_script(on_fire)),
        caps=rlm.Caps(calls=12),
        concurrency=1,
    )
    result = tally(outcome)
    reasons = {row.reason.partition(":")[0] for row in result.rows()}
    assert "judged in 1 of 2 passes; the run ended first" in reasons


async def test_an_address_where_nobody_listens_ends_a_count_soon() -> None:
    options = CountOptions(
        model="openai+http://127.0.0.1:9/v1:nobody", retry=RetryPolicy(attempts=1), concurrency=1
    )
    outcome = await count_with("fire?", reports(400), options)
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "model-unusable"
    assert outcome.receipts.totals.failed == 3


@pytest.mark.parametrize("swapped", [["a"], 7, None])
async def test_a_question_that_is_none_is_refused(swapped: object) -> None:
    with pytest.raises(rlm.ValidationError, match="the question is a"):
        await rlm.count(cast("str", swapped), reports(3), judge=on_fire)


async def test_a_label_that_should_mean_yes_and_that_nobody_gave_is_refused() -> None:
    with pytest.raises(rlm.LabelsError, match="no record is labelled 'spma'") as caught:
        await rlm.count("?", reports(3), judge=on_fire, labels={"r0": "spam"}, positive="spma")
    assert "'spam'" in str(caught.value)


async def test_labels_may_be_truth_values_and_ids_numbers() -> None:
    labels = cast("dict[str, str]", {1: True, "2": 0})
    outcome = await rlm.count("?", [("1", "calm"), ("2", "fire")], judge=on_fire, labels=labels)
    assert list(tally(outcome).matched_ids) == ["1"]


async def test_an_empty_set_of_labels_is_said_and_not_ranked_around() -> None:
    with pytest.raises(rlm.LabelsError, match="holds no label"):
        await rlm.count("?", reports(3), encoder=Letters(), labels={}, cache=False)


@pytest.mark.parametrize(
    "wrong",
    [{"model": 5}, {"judge": 5}, {"caps": {}}, {"run": b"x"}, {"terms": (1,)}, {"terms": ("",)}],
)
async def test_an_option_of_another_kind_is_refused_with_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(rlm.ValidationError, match=next(iter(wrong))):
        await rlm.count("?", reports(3), **wrong)


async def test_the_receipt_says_which_corpus_was_counted_whatever_its_order() -> None:
    first = await rlm.count("fire?", reports(9), judge=on_fire)
    other = await rlm.count("fire?", reports(9)[::-1], judge=on_fire)
    changed = await rlm.count("fire?", reports(8), judge=on_fire)
    prints = [o.receipts.source["fingerprint"] for o in (first, other, changed)]
    assert prints[0] == prints[1] != prints[2]
    assert first.receipts.source["records"] == "9"
