"""The parts of a count on a cluster that need no cluster: values, seats, traces, settling."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.agenda import Ordinals
from corpus.criterion import Criterion
from corpus.judges.base import Window
from corpus.judges.chat import ChatJudge
from corpus.questions import OneOf, YesNo
from corpus.records import Part
from corpus.sources import open_source
from corpus.spool import build_spool
from corpus.verdicts import Matched, NotMatched
from corpus.windows import Cut
from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.endpoint.retry import RetryPolicy
from executors.errors import Halted, ServerFault, ValidationError
from executors.gate.allowance import Caps, CapsAllowance, Drawn, Estimate
from executors.ids import ContentKey, NodeId
from executors.journal.journal import RunJournal
from executors.journal.lines import failure_line, intent_line
from executors.journal.records import Filed, Paid
from executors.leases import Lease, LeaseBook
from executors.messages import ModelReply
from executors.models.prices import Price
from executors.usage import Usage
from rlm.cluster import require_units
from rlm.cluster.seats import Seats
from rlm.cluster.settling import FiledOnly, look
from rlm.cluster.traces import Trace, is_written
from rlm.judging import plan_judge
from rlm.options.options import CountOptions
from rlm.testing import ScriptedModel, judge_script
from rlm.units.filed import UnitJournal, pack_known, unpack_known
from rlm.units.lease import halted_of, pack_halted
from rlm.units.sources import Sent, SpoolBlock
from rlm.units.values import BlockRef, BlockReport, LeaseAsk, RunOptions

pytestmark = pytest.mark.anyio

KEY = ContentKey("0" * 31 + "1")

# ---------------------------------------------------------------- values


@given(st.lists(st.booleans(), min_size=1, max_size=2_048))
def test_a_reference_to_a_block_is_short_and_comes_back_whole(done: list[bool]) -> None:
    bits = np.array(done)
    ref = BlockRef(
        pass_index=1, first=4_096, size=len(done), agenda="agenda-2.npz",
        done=BlockRef.pack(bits), known=True,
    )  # fmt: skip
    assert BlockRef.of_json(ref.to_json()) == ref
    assert len(str(ref.to_json())) < 1_024
    assert (ref.unpack() == bits).all()


@pytest.mark.parametrize("question", [YesNo(text="é?"), OneOf(text="which?", labels=("a", "b"))])
def test_the_options_of_a_run_travel(question: YesNo | OneOf) -> None:
    chosen = CountOptions(model="openai+http://localhost:1/v1:m", key_env="MY_KEY", engine="dask")
    options = RunOptions(
        directory="d", token="t", run="r", session=2, question=question, passes=2,
        options=chosen.recorded()[0], price=Price(input=Decimal("0.1"), output=Decimal(2)),
        retry=RetryPolicy(attempts=3), cut=Cut(items=4), judge="j", node="root.2", grace=5.0,
    )  # fmt: skip
    back = RunOptions.of_json(options.to_json())
    assert back == options
    assert CountOptions.of_record(back.options).model == chosen.model


def test_a_report_and_a_wish_travel() -> None:
    drawn = Drawn(calls=3, tokens=70, usd=Decimal("0.0100"))
    report = BlockReport(
        values={0: 4, 7: [2, None, "why"]}, early=(3,), unresolved={"refused": (1, 2)}, drawn=drawn
    )
    assert BlockReport.of_json(report.to_json()) == report
    for need in (None, Estimate(tokens=5, usd=None), Estimate(tokens=5, usd=Decimal("0.1"))):
        ask = LeaseAsk(drawn=drawn, need=need, refused=True)
        assert LeaseAsk.of_bytes(ask.to_bytes()) == ask
    halted = Halted(bound="usd", scope="run", limit="10", hint="more")
    back = halted_of(pack_halted(halted))
    assert back is not None
    assert str(back) == str(halted)


async def test_records_are_sent_as_they_stand_in_the_spool(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(20)] + ["half \ud83d", "line\u2028break\nand more"]
    source = open_source([(f"r{n}", text) for n, text in enumerate(texts)])
    with await build_spool(source, tmp_path / "spool") as spool:
        ordinals: Ordinals = np.array([21, 3, 20, 5], dtype=np.uint32)
        here = SpoolBlock(spool, ordinals)
        sent = Sent.unpack(Sent.pack(spool, ordinals))
        both = [[p for some in one.parts([2, 0, 1]) for p in some] for one in (here, sent)]
        assert both[0] == both[1]
        assert [part.ordinal for part in both[0]] == [2, 0, 1]
        assert (here.digests == sent.digests).all()


# ---------------------------------------------------------------- which counts

MODEL = "openai+http://localhost:1/v1:m"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (CountOptions(terms=("fire",), engine="dask"), "asks no model"),
        (CountOptions(model=ScriptedModel("x"), engine="dask"), "cannot send model"),
        (CountOptions(judge=lambda _: True, engine="dask"), "asks no model"),
        (CountOptions(model=MODEL, replay="there", engine="dask"), "asks nobody"),
    ],
    ids=["terms", "object", "predicate", "replay"],
)
def test_what_no_unit_can_judge_is_refused(options: CountOptions, why: str) -> None:
    plan = plan_judge(options, YesNo(text="fire?"), asks=False)
    with pytest.raises(ValidationError, match=why):
        require_units(options, plan)


# ---------------------------------------------------------------- seats


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=60), st.integers(1, 9))
def test_seats_never_hold_more_slots_than_there_are(
    steps: list[tuple[int, int]], slots: int
) -> None:
    """Whoever comes, renews, drains or leaves: what may be in flight stays within the cap."""
    clock = VirtualClock()
    allowance = CapsAllowance(Caps(), clock)
    seats = Seats(LeaseBook(slots=slots, allowance=allowance, clock=clock), slots=slots)
    seats.open(2)
    leases: dict[str, Lease] = {}
    flying: dict[str, int] = {}
    for who, what in steps:
        if what == 0 or not leases:
            lease = seats.take(6)
            if isinstance(lease, Lease):
                leases[lease.worker] = lease
                flying[lease.worker] = lease.slots
        else:
            seat = sorted(leases)[who % len(leases)]
            match what:
                case 1:
                    next_one = seats.renew(seat, LeaseAsk(drawn=Drawn(), need=None, refused=False))
                    assert isinstance(next_one, Lease)
                    leases[seat] = next_one
                    flying[seat] = max(flying[seat], next_one.slots)
                case 2:
                    seats.drained(seat, leases[seat].slots)
                    flying[seat] = leases[seat].slots
                case _:
                    (seats.give_back if who % 2 else seats.leave)(seat, Drawn())
                    del leases[seat], flying[seat]
        assert sum(flying.values()) <= slots
        assert seats.count <= slots


def test_slots_that_a_worker_gives_up_are_free_once_its_calls_have_ended() -> None:
    clock, plain = VirtualClock(), LeaseAsk(drawn=Drawn(), need=None, refused=False)
    book = LeaseBook(slots=9, allowance=CapsAllowance(Caps(), clock), clock=clock)
    seats = Seats(book, slots=9)
    seats.open(2)
    taken = [seats.take(3) for _ in range(3)]
    first, second, third = (one for one in taken if isinstance(one, Lease))
    assert (first.slots, second.slots, third.slots) == (4, 5, 0)
    shrunk = seats.renew(second.worker, plain)
    assert isinstance(shrunk, Lease)
    assert shrunk.slots == 3
    early = seats.renew(third.worker, plain)
    assert isinstance(early, Lease)
    assert early.slots == 0  # five calls may still be in flight there
    seats.drained(second.worker, shrunk.slots)
    late = seats.renew(third.worker, plain)
    assert isinstance(late, Lease)
    assert late.slots == 2


def test_a_seat_that_lapsed_while_the_machine_slept_goes_on() -> None:
    clock = VirtualClock()
    allowance = CapsAllowance(Caps(), clock)
    seats = Seats(LeaseBook(slots=4, allowance=allowance, clock=clock), slots=4)
    seats.open(1)
    lease = seats.take(1)
    assert isinstance(lease, Lease)
    clock.advance(3_600)
    again = seats.renew(lease.worker, LeaseAsk(drawn=Drawn(calls=2), need=None, refused=False))
    assert isinstance(again, Lease)
    assert again.slots == 4
    assert allowance.drawn.calls == 2


# ---------------------------------------------------------------- traces


def test_a_trace_knows_what_was_answered_failed_or_is_open(tmp_path: Path) -> None:
    trace, other = Trace(), ContentKey("0" * 31 + "2")
    paid = Paid(tokens=7, usd=Decimal("0.5"), attempts=1)
    segment = tmp_path / "segment"
    before = intent_line(ContentKey("0" * 31 + "3"), 1_000, None)
    lines = [
        intent_line(KEY, 10, Decimal(1)),
        intent_line(other, 20, Decimal(2)),
        failure_line(KEY, ServerFault("broken"), paid),
    ]
    segment.write_bytes(b"".join([before, *lines]) + b'{"i":"half')
    trace.read(segment, len(before))
    assert trace.drawn == Drawn(calls=2, tokens=27, usd=Decimal("2.5"))
    assert trace.open == 1
    assert [lost.key for lost in trace.lost] == [other]
    trace.told.add(other)
    assert trace.lost == []


async def test_the_writer_of_a_segment_is_known_to_live(tmp_path: Path) -> None:
    journal = RunJournal.open(tmp_path, index=False)
    segment = tmp_path / "journal" / journal.segment
    assert not is_written(segment)
    journal.intent(KEY, tokens=1, usd=None)
    assert is_written(segment)
    await journal.aclose()
    assert not is_written(segment)


# ---------------------------------------------------------------- what is filed already


def window(index: int, *texts: str, ordinals: tuple[int, ...] = ()) -> Window:
    places = ordinals or tuple(range(index, index + len(texts)))
    items = tuple(
        Part(ordinal=n, id=f"r{n}", text=text, index=i if ordinals else 0, of=2 if ordinals else 1)
        for i, (n, text) in enumerate(zip(places, texts, strict=True))
    )
    return Window(index=index, pass_index=0, items=items)


async def judged(tmp_path: Path, windows: list[Window], *, without: int) -> list[int]:
    """Judge windows into a journal, all but the last calls; return which are settled from it."""
    run = tmp_path / "run"
    run.mkdir()
    clock, criterion, node = VirtualClock(), Criterion(question=YesNo(text="fire?")), NodeId("root")
    model = ScriptedModel(judge_script(lambda text: "fire" in text))
    journal = RunJournal.open(run)
    calls = Calls(
        allowance=CapsAllowance(Caps(), clock), emit=lambda _: None, clock=clock, journal=journal
    )
    judge = ChatJudge(calls, model, criterion, node=node)
    for one in windows[: len(windows) - without]:
        await judge.judge(one)
    filed = FiledOnly(journal)
    again = Calls(
        allowance=CapsAllowance(Caps(), clock), emit=filed.emit, clock=clock, journal=filed
    )
    looks = await look(windows, ChatJudge(again, model, criterion, node=node), filed)
    await journal.aclose()
    assert model.calls == len(windows) - without
    for seen in looks:
        if seen.verdicts is not None:
            assert seen.window is not None
            texts = [part.text for part in seen.window.items]
            expected = [Matched if "fire" in text else NotMatched for text in texts]
            assert list(map(type, seen.verdicts)) == expected
    return [n for n, seen in enumerate(looks) if seen.verdicts is not None]


async def test_windows_whose_answers_are_filed_are_settled_without_a_call(tmp_path: Path) -> None:
    windows = [window(0, "fire", "calm"), window(2, "calm", "calm"), window(4, "fire", "fire")]
    assert await judged(tmp_path, windows, without=1) == [0, 1]


async def test_a_record_in_parts_is_settled_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """Its last part was never answered, so that the window of its first is left to a unit too."""
    windows = [
        window(0, "calm", "calm"),
        window(2, "fire one", ordinals=(2,)),
        window(3, "fire two", ordinals=(2,)),
    ]
    assert await judged(tmp_path, windows, without=1) == [0]


async def test_an_answer_that_led_to_a_question_is_kept_for_the_unit_that_asks_it(
    tmp_path: Path,
) -> None:
    """A worker died over the second question: the first answer is not paid again."""
    run = tmp_path / "run"
    run.mkdir()
    clock, criterion, node = VirtualClock(), Criterion(question=YesNo(text="fire?")), NodeId("root")
    model = ScriptedModel('{"1": "yes"}')  # says nothing of the second one
    journal = RunJournal.open(run)
    allowance = CapsAllowance(Caps(), clock)
    calls = Calls(allowance=allowance, emit=lambda _: None, clock=clock, journal=journal)
    both = window(0, "fire", "calm")
    await ChatJudge(calls, model, criterion, node=node, repair=False).judge(both)
    filed = FiledOnly(journal)
    again = Calls(allowance=allowance, emit=filed.emit, clock=clock, journal=filed)
    (seen,) = await look([both], ChatJudge(again, model, criterion, node=node), filed)
    await journal.aclose()
    assert seen.verdicts is None
    assert [found.reply.text for found in seen.found.values()] == ['{"1": "yes"}']
    assert model.calls == 1


def test_known_answers_travel_and_one_that_is_of_no_use_is_forgotten() -> None:
    filed = Filed(
        reply=ModelReply(text="y\ud83d", stop="end", usage=Usage(input=1, output=1)), usd=None
    )
    known = unpack_known(pack_known({KEY: filed}))
    assert known == {KEY: filed}
    journal = UnitJournal()
    journal.begin(journal.inner, known)
    assert journal.find(KEY) == filed
    journal.void(KEY, "nonsense")
    assert journal.find(KEY) is None
