"""Filing: a record that was judged keeps its verdict, whatever becomes of the corpus around it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from corpus.agenda import Agenda
from corpus.filing import Filing
from corpus.judges.base import JudgeInfo, Window
from corpus.ledger import Ledger
from corpus.results import Tally, tally
from corpus.scan import Scan, distinct, scan
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from corpus.verdicts import Chosen, Matched, NotMatched, Quote, Unresolved, Unsure, Verdict
from corpus.windows import Cut
from executors.clock import VirtualClock
from executors.errors import RunDirError
from executors.ids import ContentKey, NodeId, content_key
from executors.journal.records import NOTE_KEY_BYTES, NoJournal
from executors.replies import JsonValue

pytestmark = pytest.mark.anyio


class Memory(NoJournal):
    """Keeps notes in a dict, as a journal does from session to session."""

    def __init__(self) -> None:
        self.kept: dict[tuple[ContentKey, bytes], JsonValue] = {}

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        size = NOTE_KEY_BYTES
        for n, value in enumerate(values):
            self.kept[scope, keys[n * size : (n + 1) * size]] = value

    def notes(self, scope: ContentKey) -> Iterator[tuple[bytes, JsonValue]]:
        return iter([(key, value) for (s, key), value in self.kept.items() if s == scope])


class Judge:
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
        self.seen: list[str] = []

    async def judge(self, window: Window) -> Sequence[Verdict]:
        self.seen += [part.id for part in window.items]
        return [self._decide(part.text) for part in window.items]


def decide(text: str) -> Verdict:
    if "smoke" in text:
        return Unsure(reason="only smoke", probability=0.5)
    if "fire" in text:
        start = text.index("fire")
        return Matched(probability=0.75, quote=Quote(text="fire", start=start, end=start + 4))
    return NotMatched(probability=0.25)


async def spooled(texts: Iterable[str], folder: Path) -> Spool:
    return await build_spool(open_source([(f"r{n}", text) for n, text in enumerate(texts)]), folder)


async def session(
    spool: Spool,
    journal: Memory,
    judge: Judge,
    *,
    passes: int = 2,
    tokens: int = 6_000,
    labels: tuple[str, ...] = (),
) -> Tally:
    ledger = Ledger(len(spool), passes=passes, labels=labels)
    todo = distinct(spool)
    filing = Filing(
        journal,
        spool,
        ledger,
        todo,
        criterion=content_key("q"),
        judge=judge.info.identity,
    )
    filing.restore()
    plan = Scan(cut=Cut(items=4, tokens=tokens, overlap=0), agenda=filing.agenda(), cap=2)
    await scan(
        spool,
        judge,
        ledger,
        plan,
        node=NodeId("root"),
        emit=lambda _: None,
        clock=VirtualClock(),
        filing=filing,
    )
    return tally(spool, ledger, votes="any", judge="fake")


def shape(result: Tally) -> dict[str, object]:
    return {
        row.id: (row.state, row.label, row.probability, row.reason, row.quote)
        for row in result.rows()
    }


async def test_a_finished_corpus_is_judged_no_more_and_comes_out_the_same(tmp_path: Path) -> None:
    texts = ["a fire", "calm", "smoke", "calm too", "fire", "", "fire"]
    spool, journal = await spooled(texts, tmp_path / "one"), Memory()
    first = await session(spool, journal, Judge(decide))
    again = Judge(decide)
    assert shape(await session(spool, journal, again)) == shape(first)
    assert again.seen == []


@pytest.mark.case("S11")
async def test_only_what_is_new_is_judged_in_a_grown_and_shuffled_corpus(tmp_path: Path) -> None:
    texts = [f"{'fire' if n % 3 else 'calm'} {n}" for n in range(40)]
    journal = Memory()
    await session(await spooled(texts, tmp_path / "one"), journal, Judge(decide))
    judge = Judge(decide)
    grown = await spooled([*reversed(texts), "fire: a new one"], tmp_path / "two")
    result = await session(grown, journal, judge)
    assert judge.seen == ["r40", "r40"]
    assert result.count == 27
    assert result.complete


async def test_what_was_unresolved_is_judged_again(tmp_path: Path) -> None:
    spool, journal = await spooled(["fire", "calm"], tmp_path / "one"), Memory()
    broken = Judge(lambda _: Unresolved(reason="no answer"))
    assert not (await session(spool, journal, broken)).complete
    judge = Judge(decide)
    assert (await session(spool, journal, judge)).complete
    assert len(judge.seen) == 4


async def test_a_further_pass_is_the_only_one_that_is_paid(tmp_path: Path) -> None:
    spool, journal = await spooled(["fire", "calm"], tmp_path / "one"), Memory()
    await session(spool, journal, Judge(decide), passes=2)
    judge = Judge(decide)
    await session(spool, journal, judge, passes=3)
    assert len(judge.seen) == 2


async def test_a_record_of_many_parts_is_filed_once_it_is_whole(tmp_path: Path) -> None:
    long = " ".join(f"word{n}" for n in range(300)) + " fire"
    spool, journal = await spooled([long, "calm"], tmp_path / "one"), Memory()

    def plain(text: str) -> Verdict:
        return Matched() if "fire" in text else NotMatched()

    first = await session(spool, journal, Judge(plain), passes=1, tokens=100)
    assert sorted(journal.kept.values(), key=str) == [1, 4]
    again = Judge(plain)
    second = await session(spool, journal, again, passes=1, tokens=100)
    assert again.seen == []
    assert shape(second) == shape(first)


async def test_labels_come_back_as_labels(tmp_path: Path) -> None:
    spool, journal = await spooled(["fire", "calm"], tmp_path / "one"), Memory()
    judge = Judge(lambda text: Chosen(label="hot" if "fire" in text else "cold"))
    labels = ("cold", "hot")
    first = await session(spool, journal, judge, labels=labels)
    second = await session(spool, journal, Judge(decide), labels=labels)
    assert dict(second.labels) == dict(first.labels) == {"cold": 1, "hot": 1}


@pytest.mark.parametrize(
    "value",
    [0, 3, 6, 17, "yes", True, [True, None], [4, "x"], [4, None, 3], None, [], 4.0],
)
def test_a_value_that_is_no_verdict_is_refused(value: JsonValue) -> None:
    with pytest.raises(RunDirError, match="a verdict that is none"):
        Ledger(1, passes=1).restore(0, 0, value)


def test_an_agenda_comes_back_from_disk(tmp_path: Path) -> None:
    agenda = Agenda(passes=(np.arange(5, dtype=np.uint32), np.array([], dtype=np.uint32)))
    agenda.save(tmp_path / "a.npz")
    found = Agenda.load(tmp_path / "a.npz")
    assert [p.tolist() for p in found.passes] == [[0, 1, 2, 3, 4], []]
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(RunDirError, match="cannot be read"):
        Agenda.load(tmp_path / "a.npz")
