"""Where the time of a window goes: CPU of each stage of a scan by itself, and of the whole.

    python tests/bench/stages.py [RECORDS]

It has no bar and is no part of `make bench`: it shows where to look. Each stage does what a scan
does, over the same records, windows and replies; what none of them holds is the loop, the pulling
and the glue between stages. No latency, 64 in flight, windows of 8, two passes, a scripted model in
this process; ledger, gate, events and filing on, journal off.

Below it the whole is built up to what a count does, one thing after another; the journal's thread
counts too. A stage by itself has all that it needs at hand: between the others it takes half as long
again, so that the sum of the stages is less than the whole. Only differences tell what a thing costs.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from corpus.agenda import Agenda
from corpus.criterion import Criterion
from corpus.filing import Filing
from corpus.judges.answers import AnswerReader
from corpus.judges.base import Window
from corpus.judges.chat import ChatJudge
from corpus.judges.order import shown_order
from corpus.ledger import Ledger
from corpus.prompts import ask_message, judge_system, messages
from corpus.questions import YesNo
from corpus.scan import Scan, distinct, scan
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from corpus.verdicts import NotMatched
from corpus.windows import Cut, windows
from executors.calls.calls import Calls
from executors.clock import SystemClock
from executors.events import Emit, Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId, content_key
from executors.journal.journal import RunJournal
from executors.journal.records import Journal, NoJournal
from executors.messages import ModelReply, ModelRequest
from executors.models.fakes.scripted import ScriptedModel
from rlm.events import EventLog
from rlm.fakes.judge import judge_script
from rlm.receipts.receipts import ReceiptFold
from tests.bench.scan import short_records

__all__: list[str] = []

_ITEMS, _PASSES, _IN_FLIGHT, _ROUNDS = 8, 2, 64, 3
_NODE = NodeId("root.2")
_CRITERION = Criterion(question=YesNo(text="fire?"))
_SYSTEM = judge_system(_CRITERION, quotes=False)
_CUT = Cut(items=_ITEMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """What the stages work on: what a scan of the same spool shows, asks, is told and says."""

    folder: Path
    spool: Spool
    windows: list[Window]
    requests: list[ModelRequest]
    replies: list[ModelReply]
    events: list[Event]


def main(records: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short_records(folder / "records.jsonl", records)
        read = min(_seconds(partial(_read, folder, n)) for n in range(_ROUNDS))
        _line("pass 0, a record", read / records)
        with Spool.open(folder / "spool0") as spool:
            bench = asyncio.run(_prepared(folder, spool))
            each = 1 / len(bench.windows)
            spent = 0.0
            for stage, work in _STAGES.items():
                used = min(_seconds(partial(work, bench)) for _ in range(_ROUNDS))
                spent += used
                _line(stage, used * each)
            whole = min(_seconds(lambda: asyncio.run(_whole(bench))) for _ in range(_ROUNDS))
            _line("what is left: loop, pulling, glue", (whole - spent) * each)
            _line(f"the whole scan, a window of {_ITEMS}", whole * each)
            for built, what in _BUILT_UP.items():
                _line(built, min(_cpu(bench, what) for _ in range(_ROUNDS)) * each)


def _line(what: str, seconds: float) -> None:
    sys.stdout.write(f"{what:44}{seconds * 1e6:8.1f} us\n")


def _seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that all threads of this process took."""
    started = time.process_time()
    work()
    return time.process_time() - started


def _read(folder: Path, number: int) -> None:
    source = open_source(folder / "records.jsonl")
    asyncio.run(build_spool(source, folder / f"spool{number}")).close()


async def _prepared(folder: Path, spool: Spool) -> _Bench:
    cut = list(_windows(spool))
    requests = [_request(ask_message(_texts(window))) for window in cut]
    model = _model()
    replies = [await model.generate(request) for request in requests]
    events: list[Event] = []
    await _scan(spool, events.append)
    return _Bench(
        folder=folder, spool=spool, windows=cut, requests=requests, replies=replies, events=events
    )


def _agenda(spool: Spool) -> Agenda:
    return Agenda.whole(distinct(spool), _PASSES)


def _windows(spool: Spool) -> Iterator[Window]:
    agenda = _agenda(spool)
    for pass_index in range(_PASSES):
        for block in agenda.blocks(pass_index, items=_ITEMS):
            yield from windows(spool, block, _CUT)


def _texts(window: Window) -> list[str]:
    return [window.items[place].text for place in shown_order(window)]


def _request(user: str) -> ModelRequest:
    return ModelRequest(messages=messages(_SYSTEM, user), max_tokens=1_120, temperature=0.0)


def _model(latency: float = 0.0) -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text), latency=latency)


def _calls(emit: Emit, journal: Journal | None = None) -> Calls:
    allowance = CapsAllowance(Caps(calls=10**9, tokens=10**15), SystemClock())
    return Calls(allowance=allowance, emit=emit, concurrency=_IN_FLIGHT, journal=journal)


def _filing(spool: Spool, ledger: Ledger, journal: Journal | None = None) -> Filing:
    key = content_key("bench")
    return Filing(journal or NoJournal(), spool, ledger, distinct(spool), criterion=key, judge=key)


# ---------------------------------------------------------------- the whole


async def _whole(bench: _Bench) -> None:
    with EventLog(bench.folder / "whole.jsonl", ReceiptFold()) as log:
        await _scan(bench.spool, log)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """What is on in a scan; each of these adds one thing to the one before."""

    latency: float = 0.0
    events: bool = False
    journal: bool = False


_BUILT_UP = {
    "without events": _Build(),
    "with 5 ms a call": _Build(latency=0.005),
    "with events too": _Build(latency=0.005, events=True),
    "with the journal too: all of a count": _Build(latency=0.005, events=True, journal=True),
}


def _cpu(bench: _Bench, what: _Build) -> float:
    with tempfile.TemporaryDirectory(dir=bench.folder) as name:
        return _seconds(lambda: asyncio.run(_built(bench.spool, Path(name), what)))


async def _built(spool: Spool, run: Path, what: _Build) -> None:
    with ExitStack() as stack:
        emit: Emit = _ignore
        if what.events:
            emit = stack.enter_context(EventLog(run / "events.jsonl", ReceiptFold()))
        if not what.journal:
            await _scan(spool, emit, latency=what.latency)
            return
        journal = RunJournal.open(run)
        await _scan(spool, emit, latency=what.latency, journal=journal)
        await journal.aclose()


async def _scan(
    spool: Spool, emit: Emit, *, latency: float = 0.0, journal: Journal | None = None
) -> None:
    judge = ChatJudge(_calls(emit, journal), _model(latency), _CRITERION, node=_NODE)
    ledger = Ledger(len(spool), passes=_PASSES)
    plan = Scan(cut=_CUT, agenda=_agenda(spool), cap=_IN_FLIGHT)
    filing = _filing(spool, ledger, journal)
    await scan(
        spool, judge, ledger, plan, node=_NODE, emit=emit, clock=SystemClock(), filing=filing
    )


# ---------------------------------------------------------------- the stages


def _cutting(bench: _Bench) -> None:
    for _ in _windows(bench.spool):
        pass


def _showing(bench: _Bench) -> None:
    for window in bench.windows:
        _request(ask_message(_texts(window)))


def _calling(bench: _Bench) -> None:
    reply = bench.replies[0]
    model = ScriptedModel(lambda _: reply)
    calls = _calls(_ignore)

    async def work() -> None:
        for request in bench.requests:
            await calls.ask(model, request, role="judge", node=_NODE)

    asyncio.run(work())


def _answering(bench: _Bench) -> None:
    script = judge_script(lambda text: "fire" in text)
    for request in bench.requests:
        script(request)


def _reading(bench: _Bench) -> None:
    reader = AnswerReader(_CRITERION.question, quotes=False)
    for window, reply in zip(bench.windows, bench.replies, strict=True):
        reader.read(reply.text, window.items)


def _counting(bench: _Bench) -> None:
    ledger = Ledger(len(bench.spool), passes=_PASSES)
    filing = _filing(bench.spool, ledger)
    verdicts = [NotMatched()] * _ITEMS
    for window in bench.windows:
        values = ledger.take(window.items, window.pass_index, verdicts[: len(window.items)])
        filing.file(window, window.items, values)


def _telling(bench: _Bench) -> None:
    with EventLog(bench.folder / "stage.jsonl", ReceiptFold()) as log:
        for event in bench.events:
            log(event)


def _ignore(event: Event) -> None:
    del event


_STAGES: dict[str, Callable[[_Bench], None]] = {
    "spool read, windows cut": _cutting,
    "order, prompt, request": _showing,
    "the call: key, gate, endpoint, a bare reply": _calling,
    "the scripted judge's answer": _answering,
    "the reply read": _reading,
    "ledger and filing": _counting,
    "events written and folded": _telling,
}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
