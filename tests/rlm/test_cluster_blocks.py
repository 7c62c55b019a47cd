"""What units report is taken once, for what they were sent for, and all of it."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corpus.agenda import Agenda
from corpus.codes import MATCHED, NOT, UNRESOLVED
from corpus.criterion import Criterion
from corpus.filing import Filing
from corpus.judges.chat import ChatJudge
from corpus.ledger import Ledger
from corpus.questions import YesNo
from corpus.scan import distinct
from corpus.sources import open_source
from corpus.spool import build_spool
from corpus.windows import Cut
from executors.calls.calls import Calls
from executors.clock import VirtualClock
from executors.errors import InternalError
from executors.gate.allowance import Caps, CapsAllowance, Drawn
from executors.ids import ContentKey, NodeId
from executors.journal.records import NoJournal
from executors.replies import JsonValue
from rlm.cluster.blocks import Blocks, Judged
from rlm.cluster.settling import FiledOnly
from rlm.cluster.work import TRIES
from rlm.testing import ScriptedModel
from rlm.units.values import BlockReport

pytestmark = pytest.mark.anyio

SIZE = 6


class Setting:
    """Blocks over six records in one pass, and the spans that were entered and left."""

    def __init__(self) -> None:
        self.ledger = Ledger(SIZE, passes=1)
        self.spans: list[str] = []
        self.blocks: Blocks

    @contextmanager
    def span(self, _node: NodeId, name: str) -> Generator[object]:
        self.spans.append(f"{name} begins")
        yield []
        self.spans.append(f"{name} ends")


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Setting]:
    setting, clock, node = Setting(), VirtualClock(), NodeId("root")
    source = open_source([(f"r{n}", f"text {n}") for n in range(SIZE)])
    with await build_spool(source, tmp_path / "spool") as spool:
        todo, key = distinct(spool), ContentKey("0" * 32)
        filing = Filing(NoJournal(), spool, setting.ledger, todo, criterion=key, judge=key)
        what = Judged(
            spool=spool, ledger=setting.ledger, filing=filing, agenda=Agenda.whole(todo, 1),
            agenda_name=None, cut=Cut(), node=node, emit=lambda _: None, clock=clock,
            span=setting.span, journal=NoJournal(), resumed=False,
        )  # fmt: skip
        filed = FiledOnly(NoJournal())
        calls = Calls(
            allowance=CapsAllowance(Caps(), clock), emit=filed.emit, clock=clock, journal=filed
        )
        criterion = Criterion(question=YesNo(text="?"))
        setting.blocks = Blocks(
            what, ChatJudge(calls, ScriptedModel("x"), criterion, node=node), filed
        )
        yield setting


def report(
    values: dict[int, JsonValue],
    *,
    unresolved: dict[str, tuple[int, ...]] | None = None,
    early: tuple[int, ...] = (),
) -> BlockReport:
    return BlockReport(values=values, early=early, unresolved=unresolved or {}, drawn=Drawn())


async def test_a_whole_report_ends_its_block_and_the_last_block_its_pass(made: Setting) -> None:
    (work,) = made.blocks.works
    assert not await made.blocks.settled_here(work)
    told = report({0: MATCHED, 1: NOT, 2: NOT}, unresolved={"refused": (3, 4)}, early=(5,))
    made.blocks.take(work, told, whole=True, again=False)
    codes = [MATCHED, NOT, NOT, UNRESOLVED, UNRESOLVED, MATCHED]
    assert made.ledger.codes("any").tolist() == codes
    assert made.ledger.reason(3) == "refused"
    assert made.spans == ["pass 1 of 1 begins", "pass 1 of 1 ends"]


async def test_a_record_that_is_not_reported_is_an_error_and_no_no(made: Setting) -> None:
    (work,) = made.blocks.works
    with pytest.raises(InternalError, match="without a word of 2 of its records"):
        made.blocks.take(work, report(dict.fromkeys(range(4), NOT)), whole=True, again=False)


async def test_a_record_that_is_reported_twice_is_an_error(made: Setting) -> None:
    (work,) = made.blocks.works
    made.blocks.take(work, report({0: NOT}), whole=False, again=True)
    with pytest.raises(InternalError, match="record 0 for a second time"):
        made.blocks.take(work, report({0: MATCHED}), whole=False, again=True)


async def test_what_is_sent_again_is_not_unresolved_yet(made: Setting) -> None:
    (work,) = made.blocks.works
    told = report({0: NOT}, unresolved={"never judged": (1, 2)})
    made.blocks.take(work, told, whole=False, again=True)
    ref = made.blocks.reference(work)
    assert ref.unpack().tolist() == [True] + [False] * 5


async def test_a_block_over_which_workers_keep_dying_is_left_with_the_reason(made: Setting) -> None:
    (work,) = made.blocks.works
    await made.blocks.settled_here(work)
    made.blocks.take(work, report({0: MATCHED}), whole=False, again=True)
    assert [made.blocks.given_up(work) for _ in range(TRIES)] == [False, False, True]
    assert made.ledger.codes("any").tolist() == [MATCHED] + [UNRESOLVED] * 5
    assert made.ledger.reason(5) == "the workers that judged it died, 3 of them"
    assert made.spans[-1] == "pass 1 of 1 ends"
