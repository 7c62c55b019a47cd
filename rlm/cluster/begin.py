"""Which counts can go to a cluster, and how one does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from corpus.criterion import Criterion
from executors.calls.calls import Calls
from executors.engine.dask import DaskEngine
from executors.engine.dask_address import Joined, place_of
from executors.engine.dask_cluster import require_dask
from executors.engine.stop import Stop
from executors.engine.units import UnitExecutor
from executors.errors import ValidationError
from executors.gate.allowance import Growing
from executors.journal.journal import RunJournal
from executors.leases import LeaseBook
from executors.models.prices import price_list
from executors.replies import JsonValue
from rlm._version import __version__
from rlm.cluster.answering import Answers
from rlm.cluster.blocks import Blocks, Judged
from rlm.cluster.coordinator import Coordinator
from rlm.cluster.losses import Losses
from rlm.cluster.seats import Seats
from rlm.cluster.settling import FiledOnly
from rlm.judging import Asking, JudgePlan
from rlm.options.options import CountOptions
from rlm.runs.home import write_atomically
from rlm.runs.log import RunLog
from rlm.runs.session import Session
from rlm.units.desk import PROBE
from rlm.units.values import RunOptions

__all__ = ["engine_for", "judge_on_cluster", "require_place", "require_units"]

_VERSIONED: Final = "rlm._version"


def require_units(options: CountOptions, plan: JudgePlan) -> None:
    """Refuse to send a count to a cluster that no unit could judge.

    Raises:
        ValidationError: it is not a model named by its spec that judges.
        MissingExtra: dask is not installed.
    """
    place = place_of(options.engine)
    if options.replay is not None:
        raise ValidationError(
            f"engine={options.engine!r} has no effect: a replay asks nobody",
            hint="leave --engine out",
        )
    if not isinstance(plan, Asking):
        raise ValidationError(
            f"engine={options.engine!r} has no effect: what judges here asks no model",
            hint="leave --engine out, or name a model with --model",
        )
    _, objects = options.recorded()
    for name, what in objects.items():
        raise ValidationError(
            f"engine={options.engine!r} cannot send {name} to other processes: it is {what}, "
            "an object in this one",
            hint=f"name it by a spec, as in {name}='openai:NAME', or leave --engine out",
        )
    require_dask(place)


def require_place(engine: str, data: Mapping[str, JsonValue]) -> None:
    """Refuse to send texts to workers on a host that the gate of the run does not list.

    Args:
        data: the section of the gate's configuration that lists them.

    Raises:
        Halted: it does not.
    """
    place = place_of(engine)
    if not isinstance(place, Joined):
        return
    # Only runs with a gate load what it is made of.
    from executors.gate.outlet import outlet_of

    outlet_of(data).place(str(place))


def engine_for(options: CountOptions) -> DaskEngine:
    """Return the engine that options name; it starts when it is entered.

    Raises:
        ValidationError: they name none.
    """
    return DaskEngine(place_of(options.engine), module=_VERSIONED, version=__version__)


async def judge_on_cluster(
    engine: UnitExecutor,
    what: Judged,
    *,
    plan: Asking,
    options: CountOptions,
    criterion: Criterion,
    session: Session,
    log: RunLog,
    journal: RunJournal,
    allowance: Growing,
    data: Mapping[str, JsonValue] | None = None,
) -> None:
    """Judge on a cluster what is left of a count; see `corpus.scan.scan` for what that does.

    Args:
        engine: entered already.
        data: what the run's gate says of where texts may go; None where there is no gate.

    Raises:
        Halted: see `Coordinator.run`.
    """
    filed = FiledOnly(journal)
    calls = Calls(allowance=allowance, emit=filed.emit, clock=what.clock, journal=filed)
    judge = plan.judge(calls, criterion, options, what.node, filed.emit)
    stop = options.stop or Stop()
    slots = min(options.concurrency, plan.model.info.max_concurrency or options.concurrency)
    book = LeaseBook(slots=slots, allowance=allowance, clock=what.clock, limits=options.limits)
    seats = Seats(book, slots=slots)
    token = secrets.token_hex(16)
    answers = Answers(log.directory, what.spool, seats, journal, emit=what.emit)
    coordinator = Coordinator(
        engine,
        Blocks(what, judge, filed),
        seats,
        Losses(log.directory, journal, log, node=what.node, model=plan.model.info.spec),
        answers,
        options=RunOptions(
            directory=str(log.directory.resolve()),
            token=token,
            run=session.manifest.run,
            session=session.number,
            question=criterion.question,
            passes=what.ledger.passes,
            options=options.recorded()[0],
            price=price_list(options.prices).price(plan.model.info),
            retry=options.retry,
            cut=what.cut,
            judge=judge.info.identity,
            node=what.node,
            grace=stop.grace,
            data=data,
        ),
        stop=stop,
    )
    probe = log.directory / PROBE
    write_atomically(probe, token)
    try:
        await coordinator.run()
    finally:
        probe.unlink(missing_ok=True)
