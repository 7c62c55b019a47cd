"""Rows of the case tables, whole: from the call of `count` to its outcome and its receipt."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

import rlm
from corpus.prompts import read_items
from executors.endpoint.endpoint import RetryPolicy
from executors.models.fakes.scripted import Turn
from rlm.counting import count_with
from rlm.options.options import CountOptions
from rlm.outputs import check_target, write_result
from rlm.testing import (
    Act,
    FakeServer,
    Fault,
    ModelScript,
    Received,
    Reply,
    ScriptedModel,
    VirtualClock,
    cut_short,
    judge_script,
    judge_server,
    refused_parameter,
)

pytestmark = pytest.mark.anyio

ONCE = RetryPolicy(attempts=1)


def odd(text: str) -> bool:
    return text.endswith("odd")


def items(count: int) -> list[tuple[str, str]]:
    return [(f"r{n}", f"{n} is {'odd' if n % 2 else 'even'}") for n in range(count)]


def only_at(number: int, fault: Fault) -> Callable[[int], Fault | None]:
    return lambda asked: fault if asked == number else None


async def counted(
    script: ModelScript, count: int, *, window: int = 4, caps: rlm.Caps | None = None
) -> rlm.Completed[rlm.Tally] | rlm.Incomplete[rlm.Tally | rlm.Ranking]:
    options = CountOptions(
        model=ScriptedModel(script),
        passes=1,
        window=window,
        concurrency=1,
        retry=ONCE,
        caps=caps or rlm.Caps(),
    )
    return await count_with(rlm.YesNo(text="Is it odd?"), items(count), options)


def best(outcome: rlm.Completed[rlm.Tally] | rlm.Incomplete[rlm.Tally | rlm.Ranking]) -> rlm.Tally:
    found = outcome.result if isinstance(outcome, rlm.Completed) else outcome.best
    assert isinstance(found, rlm.Tally)
    return found


# ---------------------------------------------------------------- scan


@pytest.mark.case("R-071", "R-072", "K6-4")
@pytest.mark.parametrize(("records", "matched"), [(20, 10), (8, 4)])
async def test_a_corpus_is_scanned_whole_and_what_was_not_shown_is_dropped_and_counted(
    records: int, matched: int
) -> None:
    outcome = await counted(judge_script(odd, lambda _: "invent"), records)
    assert isinstance(outcome, rlm.Completed)
    assert (outcome.result.count, outcome.result.records) == (matched, records)
    windows = [node for node in outcome.receipts.nodes if node.windows]
    assert sum(node.items for node in windows) == records
    judge = [node for node in outcome.receipts.nodes if node.foreign]
    assert sum(node.foreign for node in judge) == 2 * records // 4


@pytest.mark.case("R-074", "K6-19")
async def test_a_first_window_that_dies_leaves_a_number_and_the_names_of_what_is_missing() -> None:
    outcome = await counted(judge_script(odd, only_at(0, "fail")), 12)
    assert isinstance(outcome, rlm.Incomplete)
    why = "the call failed: server-fault: the scripted model failed, as told"
    assert outcome.missing == (f"4 record(s) unresolved: {why}",)
    tally = best(outcome)
    assert (tally.count, tally.coverage) == (4, (4, 8))
    assert [row.id for row in tally.rows() if row.state == "unresolved"] == ["r0", "r1", "r2", "r3"]


@pytest.mark.case("R-075")
async def test_a_bound_at_the_second_window_halts_and_keeps_the_first() -> None:
    outcome = await counted(judge_script(odd), 12, caps=rlm.Caps(calls=1))
    assert isinstance(outcome, rlm.Incomplete)
    assert outcome.blocker == "halted"
    tally = best(outcome)
    assert (tally.count, tally.states["unresolved"]) == (2, 8)


@pytest.mark.case("R-077", "R-097")
async def test_an_async_source_is_read_once_however_many_passes_judge_it() -> None:
    """Reading it a second time by a tool is a later step's; pass 0 is what makes once enough."""
    reads = 0

    async def source() -> AsyncIterator[tuple[str, str]]:
        nonlocal reads
        reads += 1
        for pair in items(12):
            await anyio.lowlevel.checkpoint()
            yield pair

    outcome = await rlm.count(
        "Is it odd?", source, model=ScriptedModel(judge_script(odd)), passes=3
    )
    assert (best(outcome).count, reads) == (6, 1)


# ---------------------------------------------------------------- replies


@pytest.mark.case("K6-2")
async def test_a_window_answered_in_prose_is_no_coverage_and_its_words_are_kept() -> None:
    """Window 3 of 8; further asks about fewer texts get prose too."""
    good, prose = judge_script(odd), judge_script(odd, lambda _: "prose")

    def script(request: rlm.ModelRequest) -> Turn:
        shown = {text.split()[0] for _, text in read_items(request)}
        return (prose if shown & {"12", "13", "14", "15"} else good)(request)

    outcome = await counted(script, 32)
    assert isinstance(outcome, rlm.Incomplete)
    tally = best(outcome)
    assert (tally.count, tally.coverage, tally.states["unresolved"]) == (14, (14, 18), 4)
    kept = [snippet for node in outcome.receipts.nodes for snippet in node.snippets]
    assert kept == ["All of these look as if they match, more or less."]
    again = rlm.Receipts.load(outcome.receipts.directory)
    assert again.result["coverage"] == [14, 18]


@pytest.mark.case("K3-7")
async def test_one_slice_of_ten_whose_budget_went_into_thinking_is_missing_and_no_yes() -> None:
    def script(request: rlm.ModelRequest) -> rlm.ModelReply:
        ((alias, text),) = read_items(request)
        if text.startswith("3 "):
            return rlm.ModelReply(text="", reasoning="hm" * 250, stop="max_tokens")
        return rlm.ModelReply(text=json.dumps({alias: "yes"}), stop="end")

    outcome = await counted(script, 10, window=1)
    assert isinstance(outcome, rlm.Incomplete)
    assert (best(outcome).count, best(outcome).coverage) == (9, (9, 10))
    assert outcome.missing == (
        "1 record(s) unresolved: the judge's reply was cut at its token limit",
    )


@pytest.mark.case("K3-13")
async def test_a_reply_that_fails_half_way_is_never_saved_as_an_answer() -> None:
    """What came can be read as a whole answer; the server had promised more."""
    message = {"message": {"content": '{"1":"yes"}'}, "finish_reason": "stop"}
    body = json.dumps({"choices": [message]}).encode()
    async with FakeServer(cut_short(body, promised=5_000)) as server:
        options = CountOptions(
            model=f"openai+{server.base_url}:m", passes=1, window=1, retry=ONCE, concurrency=1
        )
        outcome = await count_with(rlm.YesNo(text="?"), items(1), options)
    assert isinstance(outcome, rlm.Incomplete)
    assert best(outcome).states["unresolved"] == 1
    assert outcome.receipts.totals.calls == 0


@pytest.mark.case("K5-10")
async def test_what_a_model_writes_is_cleaned_like_what_a_source_holds(tmp_path: Path) -> None:
    """NUL, half a character and a control sequence in answer, quote and prose."""
    replies = {
        "0 \x00is": json.dumps({"1": {"answer": "yes", "quote": "0 \x00is"}}),
        "1 is": json.dumps({"1": {"answer": "yes\x00", "quote": "1 is"}}),
        "2 is": "well \x00 \ud83d \x1b[2J",
    }
    texts = [("a", "0 \x00is"), ("b", "1 is"), ("c", "2 is")]
    model = ScriptedModel(lambda request: replies[read_items(request)[0][1]])
    options = CountOptions(model=model, passes=1, window=1, quotes=True, concurrency=1)
    outcome = await count_with(rlm.YesNo(text="?"), texts, options)
    tally = best(outcome)
    assert (tally.states["matched"], tally.states["unresolved"]) == (1, 2)
    kept = [snippet for node in outcome.receipts.nodes for snippet in node.snippets]
    assert kept[1] == "well \x00 ? \x1b[2J"
    quote = next(tally.rows()).quote
    assert quote is not None
    assert quote.text == "0 \x00is"
    directory = outcome.receipts.directory
    assert rlm.Receipts.load(directory) == outcome.receipts
    assert b"\x00" not in (directory / "receipt.json").read_bytes()
    assert b"\x00" not in (directory / "events.jsonl").read_bytes()
    target = check_target(tmp_path / "out.jsonl")
    write_result(tally, target)
    rows = [json.loads(line) for line in target.path.read_bytes().split(b"\n")[:-1]]
    assert rows[0]["quote"] == "0 \x00is"


# ---------------------------------------------------------------- parameters and tries


@pytest.mark.case("K2-10")
async def test_a_dropped_temperature_is_warned_of_once_and_stands_in_the_receipt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = judge_server(odd)

    def script(received: Received) -> Act:
        if "temperature" in received.json:
            return refused_parameter("temperature")
        return good(received)

    async with FakeServer(script) as server:
        model = f"openai+{server.base_url}:m"
        outcome = await rlm.count("Is it odd?", items(40), model=model, passes=1)
    assert isinstance(outcome, rlm.Completed)
    receipts = rlm.Receipts.load(outcome.receipts.directory)
    assert receipts.temperatures == (None,)
    warned = [(text, n) for node in receipts.nodes for text, n in node.warnings.items()]
    assert warned == [
        (f"model 'm' at {server.base_url} takes no temperature: it is left out from now on", 1)
    ]
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_the_temperature_at_which_a_model_answered_stands_in_the_receipt() -> None:
    outcome = await counted(judge_script(odd), 4)
    assert outcome.receipts.temperatures == (0.0,)


@pytest.mark.case("K2-4", "K2-5")
@pytest.mark.parametrize("attempts", [1, 3])
async def test_the_receipt_counts_every_request_that_the_server_saw(attempts: int) -> None:
    async with FakeServer(Reply(status=500)) as server:
        options = CountOptions(
            model=f"openai+{server.base_url}:m",
            passes=1,
            window=4,
            clock=VirtualClock(),
            retry=RetryPolicy(attempts=attempts),
        )
        outcome = await count_with(rlm.YesNo(text="?"), items(4), options)
        assert outcome.receipts.totals.attempts == server.requests == attempts


# ---------------------------------------------------------------- labels


@pytest.mark.case("K6-10", "K6-20")
async def test_labels_find_records_by_the_normal_form_of_their_ids_and_by_nothing_else(
    tmp_path: Path,
) -> None:
    """`1.0` and `01` name other records than `1`, and are reported; the record keeps its own id."""
    file = tmp_path / "labels.csv"
    file.write_text(
        "id,label\n 1 ,yes\n2.0,yes\n02,yes\n\u200b3,yes\n\u00e9,yes\n", encoding="utf-8"
    )
    texts = [("1", "a"), ("2", "b"), ("3", "c"), ("e\u0301", "d")]
    outcome = await rlm.count("?", texts, judge=lambda _: False, labels=file)
    tally = best(outcome)
    assert list(tally.matched_ids) == ["1", "3", "e\u0301"]
    warned = " ".join(text for node in outcome.receipts.nodes for text in node.warnings)
    assert "2 label(s) name no record" in warned
