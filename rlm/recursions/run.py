"""One session of a recursion, from its directory to its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from corpus.events import SourceRead
from corpus.questions import YesNo
from corpus.results import Tally
from corpus.spool import Spool
from executors.calls.calls import Calls
from executors.engine.stop import Stop
from executors.errors import DiskFault, Halted, RunDirError, UsageError
from executors.gate.allowance import CapsAllowance, Drawn
from executors.ids import NodeId, RunId, new_run_id
from executors.models.prices import price_list
from planner.tree import TaskTree
from rlm.corpora import open_corpus
from rlm.gating import GateWanted, RunGate, open_gate
from rlm.lone_calls import governed_by
from rlm.options.gates import gate_name
from rlm.options.top_up import BudgetChange
from rlm.recursions.casting import Cast, cast_models
from rlm.recursions.ending import Ending, RecurseOutcome
from rlm.recursions.forest import Forest
from rlm.recursions.node import run_node
from rlm.recursions.options import Kept, RecurseOptions
from rlm.recursions.results import Answered, Blocked, NodeResult, Short, blocker_of, shown
from rlm.recursions.searching import Searching
from rlm.recursions.sensing import bound_sensor
from rlm.recursions.spec import Spec
from rlm.recursions.wiring import Wiring
from rlm.runs.home import how_to_go_on
from rlm.runs.keeping import KEEP_DAYS
from rlm.runs.log import ROOT, ModelWarnings, RunLog
from rlm.runs.manifest import Manifest
from rlm.runs.session import Session, Wanted
from rlm.synthesis import concat

__all__ = ["RecurseRun"]

# Seconds that the disk gets to take it all when a run ends.
_CLOSING: Final = 30
_CUT_OFF: Final = frozenset({"cancelled", "disk", "halted", "interrupted", "out-of-quota"})


class RecurseRun:
    """Takes a task apart once, in one session of a run.

    Raises:
        UsageError: from the constructor, when a model that is named cannot work.
    """

    def __init__(self, task: str, wiring: Wiring, options: RecurseOptions) -> None:
        self._task = task
        self._wiring = wiring
        self._options = options
        self._clock = wiring.clock
        self._warnings = ModelWarnings()
        self._cast: Cast = cast_models(wiring, warn=self._warnings)
        self._forest: Forest | None = None
        self._gate: RunGate | None = None

    async def outcome(self) -> RecurseOutcome:
        """Run to the one outcome. Whatever happens, the receipt of what was done is written."""
        self._session = session = await self._begin()
        try:
            with RunLog(
                session.directory, clock=self._clock, on_event=self._wiring.on_event
            ) as self._log:
                self._log.start(
                    RunId(session.manifest.run),
                    session=session.number,
                    name="recurse",
                    task=self._task,
                    options=self._shown,
                )
                if session.expired:
                    said = f"{len(session.expired)} old run(s) were deleted, as {KEEP_DAYS} asks"
                    self._log.warn(ROOT, "retention", said)
                self._warnings.go_to(self._log)
                self._ending = Ending(session, self._log, self._task, self._clock)
                return await self._whole()
        except UsageError:
            if self._forest is None or not self._forest.calls.sent:
                session.discard()
            raise
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSING):
                await session.close()
                with suppress(DiskFault):  # it is Incomplete already, or an error of its own
                    self._close_gate()

    def _close_gate(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.close()

    @property
    def _shown(self) -> dict[str, str]:
        caps = self._wiring.caps
        bounds = f"{caps.calls:,} calls, {caps.tokens:,} tokens, {caps.usd} USD, {caps.seconds:g} s"
        gate = self._wiring.gate
        more = {} if gate is None else {"gate": gate_name(gate)}
        return {**self._options.shown, **self._cast.shown, **more, "bounds": bounds}

    async def _begin(self) -> Session:
        values, objects = self._options.recorded()
        wired, given = self._wiring.recorded()
        wanted = Wanted(
            directory=self._options.run,
            question=YesNo(text=self._task),
            options={**values, **wired},
            objects={**objects, **given},
            kind="recurse",
        )
        now = self._clock.now()
        begin = partial(Session.begin, wanted, run=new_run_id(now), now=now)
        return await anyio.to_thread.run_sync(begin)

    async def _whole(self) -> RecurseOutcome:
        try:
            return await self._recurse()
        except UsageError:
            if self._forest is not None and self._forest.calls.sent:
                self._ending.finish("failed", None, ())
            raise
        except Halted as halted:
            blocked = Blocked(
                blocker=blocker_of(halted), detail=halted.what, node=ROOT, task=self._task
            )
            return self._ending.of(Short(best=None, blocked=blocked), (), halted)
        except Exception:
            self._ending.finish("failed", None, ())
            raise
        except BaseException as error:
            error.add_note(how_to_go_on(self._log.directory))
            self._ending.finish("cancelled", None, ())
            raise
        finally:
            await self._cast.let_go()

    async def _recurse(self) -> RecurseOutcome:
        journal = await self._session.open_journal()
        for warning in journal.warnings:
            self._log.warn(ROOT, "journal", warning)
        worker = self._cast.models.worker.info.spec
        self._log.recover(journal, node=ROOT, model=worker, role="worker")
        spent, wiring = journal.spent, self._wiring
        drawn = Drawn(calls=spent.calls, tokens=spent.tokens, usd=spent.usd)
        self._gate = gate = self._opened_gate(drawn)
        if gate is not None:
            journal.before_commits(gate.flush)
        own = CapsAllowance(
            wiring.caps, self._clock, calls=drawn.calls, tokens=drawn.tokens, usd=drawn.usd
        )
        calls = Calls(
            allowance=own if gate is None else gate.allowance,
            emit=self._log.emit,
            clock=self._clock,
            journal=journal,
            prices=price_list(wiring.prices),
            retry=wiring.retry,
            concurrency=wiring.concurrency,
            limits=wiring.limits,
            outlet=None if gate is None else gate.outlet,
        )
        self._forest = forest = Forest(
            calls=calls,
            models=self._cast.models,
            wiring=wiring,
            options=self._options,
            log=self._log,
            journal=journal,
            tree=TaskTree(
                self._task,
                spawned=2 * self._options.max_nodes,
                children=2 * self._options.max_nodes,
            ),
            stop=Stop(clock=self._clock),
            governor=None if gate is None else gate.governor,
            spool=await self._read(),
            goes_on=_was_cut_off(self._session.before),
        )
        sensing = bound_sensor(self._options.refine_leaf, forest.spool)
        options = replace(self._options, refine_leaf=sensing)
        forest.notes.extend(self._cast.notes)
        if forest.spool is not None:
            folder, foreign = self._session.directory / "spool", self._session.manifest.foreign
            forest.searching = Searching(forest.spool, folder, fresh=foreign)
        if forest.spool is not None and len(forest.spool) == 0:
            blocked = Blocked(
                blocker="empty-corpus",
                detail="the corpus holds no record",
                node=ROOT,
                task=self._task,
            )
            return self._ending.of(Short(best=None, blocked=blocked), ())
        spec = Spec(node=ROOT, task=self._task, depth=0, index=0, options=options)
        with governed_by(calls, forest.governor):
            result = await self._grown(forest, spec)
        calls.tell_pace()
        try:
            self._close_gate()
        except DiskFault as fault:  # what it could not write down is no Completed
            forest.halted, result = forest.halted or fault, self._unwritten(result, fault)
        return self._ending.of(result, tuple(forest.notes), forest.halted)

    def _unwritten(self, result: NodeResult, fault: DiskFault) -> NodeResult:
        if isinstance(result, Short):
            return result
        blocked = Blocked(blocker=blocker_of(fault), detail=fault.what, node=ROOT, task=self._task)
        return Short(best=result.value, blocked=blocked)

    def _opened_gate(self, spent: Drawn) -> RunGate | None:
        """Return the gate of the run, where there is one; no text may go where it forbids that."""
        wiring = self._wiring
        wanted = GateWanted(
            gate=wiring.gate,
            human=wiring.human,
            top_up=BudgetChange.of(wiring.top_up),
            caps=wiring.caps,
        )
        gate = open_gate(self._session, wanted, self._clock, spent)
        if gate is not None:
            cast = self._cast
            self._cast = replace(cast, models=cast.models.behind(gate.outlet))
        return gate

    async def _grown(self, forest: Forest, spec: Spec) -> NodeResult:
        """Let the tree grow from its root, and let go of what it read with."""
        held: object = None
        try:
            result = await self._tended(forest, spec)
            held = result.value if isinstance(result, Answered) else result.best
        finally:
            with anyio.CancelScope(shield=True):
                if forest.searching is not None:
                    await forest.searching.aclose()
            if forest.spool is not None and not isinstance(held, Tally):  # it reads its ids there
                forest.spool.close()
        return result

    async def _tended(self, forest: Forest, spec: Spec) -> NodeResult:
        """Let the tree grow for as long as nobody wishes to stop."""
        result: NodeResult | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._heed, forest, group.cancel_scope)
                result = await run_node(forest, spec)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return result or _cut_off(forest, spec)

    async def _heed(self, forest: Forest, scope: anyio.CancelScope) -> None:
        """Pass the caller's wish to stop on to the tree; after its grace, end what is in flight."""
        if (stop := self._wiring.stop) is None:
            return
        with stop.heeding():
            await stop.wait()
            forest.halt(stop.error())
            await stop.clock.sleep(stop.grace)
            scope.cancel()

    async def _read(self) -> Spool | None:
        corpus = self._options.corpus
        if corpus is None or isinstance(corpus, Kept):
            return self._kept()
        opened = open_corpus(corpus)
        self._session.read_from(opened.spec)
        source = opened.source
        spool = await self._session.build_spool(source, self._options.on_duplicate)
        info = source.info
        self._log.emit(
            SourceRead(
                node=ROOT,
                at=self._clock.now(),
                source=info.name,
                records=len(spool),
                empty=int(spool.is_empty.sum()),
                identical=spool.identical,
                said=info.said,
                fingerprint=spool.fingerprint,
            )
        )
        for warning in source.warnings:
            self._log.warn(ROOT, warning.code, warning.sentence, warning.count)
        return spool

    def _kept(self) -> Spool | None:
        """Return what an earlier session of this run read; None where it is about no corpus."""
        if self._session.manifest.source is None and self._session.number == 1:
            return None
        spool, wanted = self._session.kept_spool(), isinstance(self._options.corpus, Kept)
        if spool is None and (wanted or self._session.manifest.source is not None):
            raise RunDirError(
                f"the run in {str(self._session.directory)!r} ended before its corpus was read",
                hint="give the corpus again with corpus= (--corpus)",
            )
        return spool


def _cut_off(forest: Forest, spec: Spec) -> Short:
    """Return what a tree is that did not end within the grace of a stop."""
    assert forest.halted is not None
    halted = forest.halted
    blocked = Blocked(
        blocker=blocker_of(halted), detail=halted.what, node=spec.node, task=spec.task
    )
    return Short(best=_kept(forest), blocked=blocked, missing=(spec.title,))


def _kept(forest: Forest) -> object | None:
    """Return what was counted, or what the highest of the nodes that have ended came to."""
    if forest.counting is not None:
        return forest.counting()
    ended = forest.values
    highest = [node for node in ended if not any(above in ended for above in _above(node))]
    ordered = sorted(highest, key=lambda node: [int(part) for part in node.split(".")[1:]])
    return concat([ended[node] for node in ordered], shown) if ordered else None


def _above(node: NodeId) -> Iterator[NodeId]:
    while "." in node:
        node = NodeId(node.rpartition(".")[0])
        yield node


def _was_cut_off(before: Manifest) -> bool:
    """Whether the last session of a run did not come to an end of its own."""
    if not before.sessions:
        return False
    last = before.sessions[-1]
    return last.ended is None or last.blocker in _CUT_OFF
