"""The gate of a run: opened for a session, and kept in the run's directory.

`gate/` holds the configuration as it was used, the ledger and the audit. A later session that is given
no gate goes on under the one that is kept. What came with a run from elsewhere is trusted with nothing:
it is set aside, and whoever goes on with such a run names a gate.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from executors.errors import ConfigError
from executors.gate.allowance import Caps, Drawn, Growing
from executors.gate.governor import Governor, Outlet
from executors.replies import JsonValue
from rlm.lone_calls import governed
from rlm.options.gates import GateLike, Human
from rlm.options.top_up import BudgetChange
from rlm.runs.home import write_atomically

if TYPE_CHECKING:
    from executors.clock import Clock
    from executors.gate.config.config import GateConfig
    from executors.gate.gate import Gate
    from rlm.runs.session import Session

__all__ = ["GATE", "GateWanted", "RunGate", "open_gate"]

GATE: Final = "gate"
"""The folder in a run directory."""
_CONFIG: Final = "config.json"
_NO_BOUND: Final = Decimal(2**53)
"""More than any run spends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateWanted:
    """What a session was given for its gate."""

    gate: GateLike | None
    human: Human | None
    top_up: BudgetChange | None
    caps: Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGate:
    """An open gate, as a run uses it."""

    allowance: Growing
    """What calls may spend."""
    governor: Governor
    """What tools and checkpoints pass."""
    outlet: Outlet
    """Which models texts may go to."""
    data: Mapping[str, JsonValue]
    """The same for other processes."""
    flush: Callable[[], None]
    """Writes the lines of calls, with each commit of the journal."""
    close: Callable[[], None]


def open_gate(session: Session, wanted: GateWanted, clock: Clock, spent: Drawn) -> RunGate | None:
    """Return the gate of a session; None where the run has none. Blocking, for a few milliseconds.

    Args:
        spent: what earlier sessions drew, by the journal.

    Raises:
        ConfigError: the configuration cannot be one, or the run needs a gate and brings none that can
            be trusted.
        Halted: the ledger or the audit cannot be used.
    """
    manifest, directory = session.manifest, session.directory / GATE
    if wanted.gate is None and manifest.governed is None:
        gate = _of_the_run_around()
        if gate is None:
            return None
        if wanted.caps != Caps():
            raise ConfigError(
                "a run that a governed run starts is bounded by its gate, and not by caps of its own",
                where=f"{wanted.caps}",
                hint="leave caps= out, or give it a gate of its own: gate={'budget': {…}}",
            )
        # The bound is not for a run within to raise.
        wanted = replace(wanted, gate=gate, top_up=None)
    if manifest.foreign:
        if wanted.gate is None:
            raise ConfigError(
                f"the run in {str(session.directory)!r} was made elsewhere, under a gate of its own",
                where="neither its configuration nor its books are taken from there",
                hint="read it in gate/config.json, and give a gate yourself: resume(run, gate=…) "
                "(--gate FILE)",
            )
        if os.path.lexists(directory):
            directory.rename(directory.with_name(f"{GATE}-before-{session.number}"))
    _require_own(directory)
    return _opened(session, directory, wanted, clock, spent)


def _of_the_run_around() -> Gate | None:
    """Return the gate of the governed run that starts this one, in a tool or a check of its caller's.

    It is found by the context of the task: a thread that somebody starts by themselves has none.
    """
    run = governed()
    if run is None:
        return None
    from executors.gate.governed import Governed  # loaded by then

    return run.governor.gate if isinstance(run.governor, Governed) else None


def _require_own(directory: Path) -> None:
    """Refuse a folder that leads elsewhere: what stands there is not this run's."""
    for path in (directory, directory / _CONFIG):
        if path.is_symlink():
            raise ConfigError(
                f"{str(path)!r} is a symbolic link: a gate's books stand in its run alone",
                where=str(path),
                hint="put the folder itself there, as it was; or run anew",
            )


def _opened(
    session: Session, directory: Path, wanted: GateWanted, clock: Clock, spent: Drawn
) -> RunGate:
    # What a gate is made of is heavy: only runs that have one load it.
    from executors.gate.audited import AuditedAllowance, caught_up
    from executors.gate.gate import Gate
    from executors.gate.governed import Governed
    from executors.gate.outlet import DataOutlet

    run = session.manifest.run
    if isinstance(wanted.gate, Gate):
        gate, close = wanted.gate, wanted.gate.audit.flush  # its owner closes it
    else:
        gate = _made(session, directory, wanted, clock)
        close = gate.close
    _keep(session, directory, gate.config)
    caught_up(gate.ledger, gate.audit, run, spent)
    if wanted.top_up is not None:
        for name, cap in wanted.top_up.given.items():
            gate.raise_cap(name, cap)
    outlet = DataOutlet(gate.config.data)
    return RunGate(
        allowance=AuditedAllowance(gate.allowance, gate.audit),
        governor=Governed(gate),
        outlet=outlet,
        data=outlet.data,
        flush=gate.audit.flush,
        close=close,
    )


def _made(session: Session, directory: Path, wanted: GateWanted, clock: Clock) -> Gate:
    from executors.gate.audit.audit import RunIds  # as above
    from executors.gate.gate import Gate

    config = _config(session, directory, wanted.gate)
    return Gate(
        config,
        human=wanted.human,
        clock=clock,
        directory=directory,
        run=RunIds.from_environment(os.environ, now=clock.now(), run=session.manifest.run),
        caps=_bounds(wanted.caps, config),
    )


def _config(session: Session, directory: Path, given: object) -> GateConfig:
    """Return the configuration that is given, or the one that the run has kept."""
    from executors.gate.config.load import load_config  # as above

    if given is not None:
        return load_config(given)
    config = load_config(directory / _CONFIG)
    if _digest(config) != session.manifest.governed:
        raise ConfigError(
            f"the configuration of the gate of {str(session.directory)!r} is not the one that was kept",
            where=str(directory / _CONFIG),
            hint="give the gate that you want: resume(run, gate=…) (--gate FILE)",
        )
    return config


def _bounds(caps: Caps, config: GateConfig) -> Caps:
    """Return the bounds of the run, without those that nobody chose where the gate has its own."""
    standard, budget = Caps(), config.budget
    chosen = {"calls": budget.max_calls, "tokens": budget.max_tokens, "usd": budget.max_cost_usd}
    freed = {
        name: _NO_BOUND if name == "usd" else int(_NO_BOUND)
        for name, own in chosen.items()
        if own is not None and getattr(caps, name) == getattr(standard, name)
    }
    return replace(caps, **cast("dict[str, Any]", freed))


def _keep(session: Session, directory: Path, config: GateConfig) -> None:
    digest = _digest(config)
    if session.manifest.governed != digest or not (directory / _CONFIG).exists():
        directory.mkdir(mode=0o700, exist_ok=True)
        write_atomically(directory / _CONFIG, config.model_dump_json(indent=2) + "\n")
    session.govern(digest)


def _digest(config: GateConfig) -> str:
    return blake2b(config.model_dump_json().encode(), digest_size=16).hexdigest()
