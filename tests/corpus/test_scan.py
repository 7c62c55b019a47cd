"""Scan: concurrent windows, and every record accounted for whatever a judge does."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.agenda import Agenda
from corpus.events import WindowFinished
from corpus.judges.base import JudgeInfo, Window
from corpus.ledger import Ledger
from corpus.results import Tally, tally
from corpus.scan import Scan, distinct, scan
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from corpus.tally_file import load_tally, save_tally
from corpus.verdicts import Matched, NotMatched, Quote, Unresolved, Unsure, Verdict
from corpus.windows import Cut
from executors.clock import VirtualClock
from executors.errors import (
    AuthError,
    ContextExceeded,
    Halted,
    InternalError,
    ModelUnusable,
    RequestRejected,
    ServerFault,
)
from executors.events import Event
from executors.ids import NodeId, content_key

pytestmark = pytest.mark.anyio


class Judge:
    """Judges by a function of the text; counts windows and how many fly at once."""

    info = JudgeInfo(
        kind="chat",
        name="fake",
        identity=content_key("fake"),
        deterministic=False,
        scoring=False,
        pools=False,
        window=8,
    )

    def __init__(self, decide: Callable[[str], Verdict]) -> None:
        self._decide = decide
        self.windows: list[Window] = []
        self.peak = self.flying = 0

    async def judge(self, window: Window) -> Sequence[Verdict]:
        self.windows.append(window)
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        try:
            await anyio.lowlevel.checkpoint()
            return [self._decide(part.text) for part in window.items]
        finally:
            self.flying -= 1


def fire(text: str) -> Verdict:
    if "crash" in text:
        raise ServerFault("the server fell over")
    return Matched() if "fire" in text else NotMatched()


async def spooled(texts: Iterable[str], folder: Path) -> Spool:
    pairs = [(f"r{n}", text) for n, text in enumerate(texts)]
    return await build_spool(open_source(pairs), folder / "spool")


async def counted(
    spool: Spool, judge: Judge, *, items: int = 4, passes: int = 2, cap: int = 3
) -> tuple[Tally, list[Event]]:
    events: list[Event] = []
    ledger = Ledger(len(spool), passes=passes)
    agenda = Agenda.whole(distinct(spool), passes)
    plan = Scan(cut=Cut(items=items), agenda=agenda, cap=cap)
    await scan(
        spool, judge, ledger, plan, node=NodeId("root"), emit=events.append, clock=VirtualClock()
    )
    return tally(spool, ledger, votes="any", judge="fake"), events


@pytest.mark.case("R-071")
async def test_every_matching_record_is_counted_by_code(tmp_path: Path) -> None:
    texts = [f"{'fire' if n % 2 else 'calm'} {n}" for n in range(20)]
    result, _ = await counted(await spooled(texts, tmp_path), Judge(fire), passes=1)
    assert result.count == 10
    assert list(result.matched_ids) == [f"r{n}" for n in range(1, 20, 2)]
    assert result.coverage == (10, 10)
    assert result.complete


@pytest.mark.case("R-074", "K6-19", "S18")
async def test_a_dead_window_leaves_its_records_unresolved_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    texts = ["fire a", "calm", "crash", "fire b", "fire c", "calm c"]
    result, events = await counted(await spooled(texts, tmp_path), Judge(fire), items=3, passes=1)
    assert result.states["unresolved"] == 3
    assert result.coverage == (2, 5)
    assert not result.complete
    assert result.reason(0) == "the call failed: server-fault: the server fell over"
    lost = [e for e in events if isinstance(e, WindowFinished) and e.error]
    assert [(e.window, e.first, e.error) for e in lost] == [(0, "r0", "server-fault")]


@pytest.mark.case("K6-8")
async def test_a_record_matched_in_several_passes_counts_once(tmp_path: Path) -> None:
    result, _ = await counted(await spooled(["fire", "calm"], tmp_path), Judge(fire), passes=3)
    assert result.count == 1


async def test_identical_texts_are_judged_once_and_counted_as_often_as_they_stand(
    tmp_path: Path,
) -> None:
    judge = Judge(fire)
    spool = await spooled(["fire", "calm", "fire", "fire", "  ", ""], tmp_path)
    result, _ = await counted(spool, judge, passes=1)
    assert sum(len(w.items) for w in judge.windows) == 2
    assert (result.count, result.states["empty"]) == (3, 2)
    assert result.identical >= 2
    assert sum(result.states.values()) == result.records


@pytest.mark.case("K9-2")
async def test_no_more_windows_fly_than_the_cap_allows(tmp_path: Path) -> None:
    judge = Judge(fire)
    await counted(await spooled(map(str, range(200)), tmp_path), judge, cap=5)
    assert judge.peak <= 5


async def test_neighbours_differ_between_passes(tmp_path: Path) -> None:
    judge = Judge(fire)
    await counted(await spooled(map(str, range(32)), tmp_path), judge, items=8, passes=2)
    first, second = (
        {tuple(p.id for p in w.items) for w in judge.windows if w.pass_index == n} for n in range(2)
    )
    assert not first & second


@pytest.mark.case("R-075")
async def test_a_halt_stops_the_pulling_and_keeps_what_was_judged(tmp_path: Path) -> None:
    seen = 0

    def halting(text: str) -> Verdict:
        nonlocal seen
        seen += 1
        if seen > 8:
            raise Halted(bound="calls", scope="run", limit="2")
        return fire(text)

    spool = await spooled([f"fire {n}" for n in range(100)], tmp_path)
    ledger = Ledger(100, passes=1)
    judge = Judge(halting)
    plan = Scan(cut=Cut(items=4), agenda=Agenda.whole(distinct(spool), 1), cap=1)
    with pytest.raises(Halted, match="calls bound"):
        await scan(
            spool,
            judge,
            ledger,
            plan,
            node=NodeId("root"),
            emit=lambda _: None,
            clock=VirtualClock(),
        )
    result = tally(spool, ledger, votes="any", judge="fake")
    assert (result.count, result.states["unresolved"]) == (8, 92)
    assert len(judge.windows) == 3
    assert result.reason(99) == "never judged: the run ended first"


async def test_a_judge_that_answers_for_too_few_items_is_our_fault(tmp_path: Path) -> None:
    class Short(Judge):
        async def judge(self, window: Window) -> Sequence[Verdict]:
            return (await super().judge(window))[1:]

    with pytest.raises(InternalError, match="verdicts for"):
        await counted(await spooled(["a", "b"], tmp_path), Short(fire))


async def test_an_empty_corpus_asks_nobody(tmp_path: Path) -> None:
    judge = Judge(fire)
    result, _ = await counted(await spooled([], tmp_path), judge)
    assert (result.records, judge.windows) == (0, [])


async def test_a_tally_comes_back_from_disk_as_it_was(tmp_path: Path) -> None:
    def quoting(text: str) -> Verdict:
        if "smoke" in text:
            return Unsure(reason="only smoke")
        start = text.find("fire")
        if start < 0:
            return NotMatched(probability=0.25)
        return Matched(probability=0.75, quote=Quote(text="fire", start=start, end=start + 4))

    spool = await spooled(["a fire", "smoke", "calm", "", "a fire"], tmp_path)
    result, _ = await counted(spool, Judge(quoting), passes=1)
    save_tally(result, tmp_path / "verdicts")
    again = load_tally(tmp_path / "verdicts", Spool.open(tmp_path / "spool"))
    assert list(again.rows()) == list(result.rows())
    assert again.states == result.states
    assert again.expected == result.expected == pytest.approx(1.75)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.lists(st.sampled_from(["fire", "calm", "crash", "", " ", "fire!", "x" * 400]), max_size=40),
    st.integers(1, 9),
    st.integers(1, 3),
)
def test_the_six_states_always_add_up(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], items: int, passes: int
) -> None:
    async def run() -> None:
        spool = await spooled(texts, tmp_path_factory.mktemp("spool"))
        result, _ = await counted(spool, Judge(fire), items=items, passes=passes)
        assert sum(result.states.values()) == len(texts)
        assert len(result.matched_ids) == result.count
        assert result.states["empty"] == sum(not t.strip() for t in texts)
        low, high = result.coverage
        true = sum(bool(t.startswith("fire")) for t in texts)
        assert low <= true <= high

    anyio.run(run)


async def test_a_refused_key_ends_the_scan_at_once(tmp_path: Path) -> None:
    def refused(_: str) -> Verdict:
        raise AuthError("401: no such key")

    judge = Judge(refused)
    spool = await spooled(map(str, range(400)), tmp_path)
    with pytest.raises(ModelUnusable, match="no such key"):
        await counted(spool, judge, cap=2)
    assert len(judge.windows) <= 3


async def test_a_dead_server_ends_the_scan_before_every_window_was_tried(tmp_path: Path) -> None:
    def dead(_: str) -> Verdict:
        raise ServerFault("503")

    judge = Judge(dead)
    spool = await spooled(map(str, range(4_000)), tmp_path)
    with pytest.raises(ModelUnusable, match="50 failed"):
        await counted(spool, judge, cap=2)
    assert len(judge.windows) <= 52


async def test_rejected_requests_speak_of_their_own_items_alone(tmp_path: Path) -> None:
    def long(text: str) -> Verdict:
        raise ContextExceeded(f"{len(text)} is too long")

    judge = Judge(long)
    result, _ = await counted(await spooled(map(str, range(400)), tmp_path), judge, passes=1)
    assert result.states["unresolved"] == 400


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("the server answered 404: 'no model x'", 404),
        ("404 number %d", 404),
        ("400: no such parameter (request id 9f3a-%dc77d)", 400),
    ],
)
async def test_a_model_that_is_not_there_is_given_up_in_the_servers_words(
    tmp_path: Path, words: str, status: int
) -> None:
    def rejected(text: str) -> Verdict:
        raise RequestRejected(words.replace("%d", text), status=status)

    judge = Judge(rejected)
    spool = await spooled(map(str, range(400)), tmp_path)
    with pytest.raises(ModelUnusable, match=r"stopped after 8 failed .* in a row: .*40[04]"):
        await counted(spool, judge, cap=2)
    assert len(judge.windows) <= 10


async def test_rejections_in_other_words_or_after_an_answer_are_no_reason_to_stop(
    tmp_path: Path,
) -> None:
    def picky(text: str) -> Verdict:
        if text == "0":
            return NotMatched()
        raise RequestRejected("400: the content is filtered", status=400)

    def talkative(text: str) -> Verdict:
        raise RequestRejected(f"400: {'very ' * int(text)}bad", status=400)

    spool = await spooled(map(str, range(100)), tmp_path)
    one, _ = await counted(spool, Judge(picky), items=1, passes=2, cap=1)
    other, _ = await counted(spool, Judge(talkative), items=1, passes=1)
    assert (one.states["unresolved"], other.states["unresolved"]) == (99, 100)
    assert one.reason(5) == "the call failed: rejected: 400: the content is filtered"


async def test_a_model_that_never_gives_a_usable_answer_is_given_up(tmp_path: Path) -> None:
    """It was asked about single items too: to go on would pay for the same again."""
    judge = Judge(lambda _: Unresolved(reason="the model refused"))
    spool = await spooled(map(str, range(400)), tmp_path)
    with pytest.raises(ModelUnusable, match=r"stopped after 8 .* in a row: the model refused"):
        await counted(spool, judge, cap=2)
    assert len(judge.windows) <= 10


async def test_after_one_usable_answer_what_is_unusable_is_the_texts_own(tmp_path: Path) -> None:
    def picky(text: str) -> Verdict:
        return Unsure(reason="?") if text == "0" else Unresolved(reason="the model refused")

    spool = await spooled(map(str, range(100)), tmp_path)
    result, _ = await counted(spool, Judge(picky), items=1, passes=1, cap=1)
    assert (result.states["unresolved"], result.states["unsure"]) == (99, 1)
