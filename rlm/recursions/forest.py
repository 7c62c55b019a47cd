"""What all nodes of one tree share: the calls, the caps, and the halt that stops them all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Literal

import anyio

from corpus.results import Tally
from corpus.spool import Spool
from executors.calls.calls import Calls
from executors.engine.stop import Stop
from executors.errors import Halted, ValidationError
from executors.gate.decisions import Allow, Deny, Halt, Settled
from executors.gate.governor import Deed, Governor, Outlet, halted_by
from executors.gate.rules.remedies import remedy
from executors.ids import ContentKey, NodeId, content_key
from executors.journal.records import Journal
from executors.loop.permits import decide
from executors.loop.worker import ToolRequest
from executors.models.base import Model
from executors.replies import JsonValue
from executors.tools.base import words_alone
from planner.tree import TaskTree, TreeFull
from rlm.recursions.options import SPAWN, RecurseOptions
from rlm.recursions.reading import room_for_answer
from rlm.recursions.results import Blocked, Short
from rlm.recursions.searching import Searching
from rlm.recursions.spec import Spec
from rlm.recursions.wiring import Wiring
from rlm.runs.log import RunLog

__all__ = ["Forest", "Models", "Slot"]


def _sets() -> defaultdict[NodeId, set[str]]:
    return defaultdict(set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Who plays which role. None where nobody on this machine can: rules do it, or nothing does."""

    worker: Model
    planner: Model | None
    judge: Model | None
    verifier: Model | None
    merger: Model

    def behind(self, outlet: Outlet) -> Models:
        """Return the models that texts are sent to.

        Raises:
            Halted: no text may go to one of them.
        """
        found = {id(one): outlet.model(one) for one in self._all if one is not None}
        return Models(
            worker=found[id(self.worker)],
            planner=found.get(id(self.planner)),
            judge=found.get(id(self.judge)),
            verifier=found.get(id(self.verifier)),
            merger=found[id(self.merger)],
        )

    @property
    def _all(self) -> tuple[Model | None, ...]:
        return self.worker, self.planner, self.judge, self.verifier, self.merger


@dataclass(slots=True, kw_only=True)
class Forest:
    """The state of one run that its nodes share; used on one loop."""

    calls: Calls
    models: Models
    wiring: Wiring
    options: RecurseOptions
    log: RunLog
    journal: Journal
    tree: TaskTree
    stop: Stop
    governor: Governor | None = None
    """The gate that tools and checkpoints pass, after the policy; None where there is none."""
    spool: Spool | None = None
    searching: Searching | None = None
    goes_on: bool = False
    """An earlier session of the run was cut off before it came to its end."""
    halted: Halted | None = None
    """What stopped the tree; the first one counts."""
    notes: list[str] = field(default_factory=list[str])
    """What the reader of the result should know of how it came about."""
    spawned: int | None = None
    """Nodes that models asked for and got, in all sessions; None until the first of this one."""
    values: dict[NodeId, object] = field(default_factory=dict[NodeId, object])
    """What nodes came to that have ended, for whoever asks before their parents have."""
    counting: Callable[[], Tally] | None = None
    """Counts what a scan of the whole corpus has judged so far."""
    called: defaultdict[NodeId, set[str]] = field(default_factory=_sets)
    """The tools that each worker called, by its node."""
    _claimed: Counter[NodeId] = field(default_factory=Counter[NodeId])
    _limiter: anyio.CapacityLimiter | None = None

    def halt(self, halted: Halted) -> None:
        """Stop the whole tree: no further call leaves, and what was answered is kept."""
        if self.halted is None:
            self.halted = halted
            self.calls.halt(halted)
            self.stop.ask(halted.bound)

    @property
    def can_plan(self) -> bool:
        """Whether the worker can take a task apart by itself: a model that has tools to do so."""
        return self.models.planner is not None

    def note(self, sentence: str) -> None:
        """Say once how the result came about."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def room_for_answer(self, wanted: int) -> int:
        """Return the tokens that an answer may take: a quarter of a small window at most."""
        return room_for_answer(self.models.worker, wanted)

    def no_judge(self, node: NodeId, task: str) -> Short:
        """Return what a node is that needs a judge where nobody on this machine can be one."""
        detail = (
            "no model here can judge records: a small one says yes and no at chance. Name a model; "
            "or ask, without a mode, which records mention 'some words' in quotes: code finds those"
        )
        blocked = Blocked(blocker="uncalibrated-judge", detail=detail, node=node, task=task)
        return Short(best=None, blocked=blocked, missing=(" ".join(task.split())[:80],))

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[Slot]:
        """Hold one of the tree's places while a node works; whoever waits for children lends it."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.wiring.concurrency)
        slot = Slot(self._limiter)
        await slot.take()
        try:
            yield slot
        finally:
            slot.give()

    async def checkpoint(
        self, name: str, arguments: dict[str, JsonValue], *, node: NodeId, depth: int, task: str
    ) -> Blocked | None:
        """Ask the policy and the gate before a wave spends. A deny is a deny.

        Raises:
            Halted: one of them halts the run.
        """
        request = ToolRequest(
            tool=name,
            arguments={**arguments, "depth": depth},
            context=self.wiring.data,
            node=node,
            depth=depth,
        )
        decision, who = await self._decided(request)
        match decision:
            case Allow():
                return None
            case Deny(reason=reason, rule=rule):
                detail = f"the {who} denied {name}: {reason} ({rule})"
                if who == "gate":
                    detail += f"; {remedy(rule)}"
                return Blocked(blocker="governance-deny", detail=detail, node=node, task=task)
            case Halt():
                raise halted_by(decision)

    async def _decided(self, request: ToolRequest) -> tuple[Settled, str]:
        """Return what is said of a checkpoint, and who says it."""
        policy, governor = self.wiring.policy, self.governor
        decision = await decide(
            policy, request, ask=self.wiring.ask, warn=lambda _, why: self.note(why)
        )
        if governor is None or not isinstance(decision, Allow):
            return decision, "policy"
        deed = Deed(
            tool=request.tool,
            arguments=words_alone(request.arguments),
            context=request.context,
            node=request.node,
            depth=request.depth,
        )
        decision = await governor.check(deed)
        if isinstance(decision, Allow):
            governor.drop(decision.aid)  # what follows is recorded call by call
        return decision, "gate"

    # ---------------------------------------------------------------- children that models ask for

    def admit(self, child: Spec) -> bool:
        """Return whether the tree has room for one more child that a model asks for.

        What was admitted once is admitted in every session, so that a resumed tree is the same one.
        """
        key, cap = _admission(child.node), self.options.max_nodes
        if self.journal.tool_found(key) is None:
            refusal = _refusal(child.node, cap)
            if self.journal.tool_found(refusal) is not None:
                return False
            if self._admitted() >= cap:
                self.journal.tool_begun(refusal, name=SPAWN)
                return False
            # First the place that is taken: a process that dies in between has one place less in
            # its next session, and never one too many.
            self.journal.tool_begun(_place(self._admitted()), name=SPAWN)
            self.spawned = self._admitted() + 1
            self.journal.tool_begun(key, name=SPAWN)
        self.grow(child, origin="spawned")
        return True

    def _admitted(self) -> int:
        """Return how many nodes models got in all sessions, those that will yet be met included."""
        if self.spawned is None:
            places = takewhile(lambda n: self.journal.tool_found(_place(n)) is not None, count())
            self.spawned = sum(1 for _ in places)
        return self.spawned

    def claim(self, parent: NodeId) -> int:
        """Return the next index among the children of a node, whatever they are."""
        index = self._claimed[parent]
        self._claimed[parent] += 1
        return index

    def grow(self, child: Spec, *, origin: Literal["spawned", "planned"]) -> None:
        """Put a child into the tree."""
        parent = NodeId(child.node.rpartition(".")[0])
        added = self.tree.add(parent, child.task, origin=origin, index=child.index)
        if isinstance(added, TreeFull):
            raise ValidationError(
                str(added), hint="ask for fewer parts: a larger worker_budget (--worker-budget)"
            )


class Slot:
    """A place at work. Lent while its holder waits for children, and taken again after that."""

    def __init__(self, limiter: anyio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._lent = 0

    async def take(self) -> None:
        """Wait for a place."""
        await self._limiter.acquire_on_behalf_of(self)

    def give(self) -> None:
        """Give it back, where it is held."""
        with suppress(RuntimeError):  # lent, and not got back, since the tree was cancelled
            self._limiter.release_on_behalf_of(self)

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Lend the place to others; with several at once until the last of them ends."""
        self._lent += 1
        if self._lent == 1:
            self.give()
        try:
            yield
        finally:
            self._lent -= 1
            if self._lent == 0:
                await self.take()


def _admission(child: NodeId) -> ContentKey:
    return content_key("admitted", child)


def _refusal(child: NodeId, cap: int) -> ContentKey:
    return content_key("refused", child, str(cap))


def _place(number: int) -> ContentKey:
    return content_key("place", str(number))
