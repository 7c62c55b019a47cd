"""`rlm gate`: trying a gate's rules on an action, and reading what a gate wrote down."""

from __future__ import annotations

import typer

from rlm.cli.gate_check import EXAMPLES, check
from rlm.cli.gate_log import EXAMPLES as LOGS
from rlm.cli.gate_log import log

__all__ = ["gate"]

gate = typer.Typer(
    help="Try the rules of a gate, and read what it wrote down.", add_completion=False
)
gate.command("check", short_help="Say what a gate decides about an action.", epilog=EXAMPLES)(check)
gate.command("log", short_help="Show what a gate wrote down, or check it.", epilog=LOGS)(log)


@gate.callback()
def _root() -> None:
    """Try the rules of a gate on an action, and read what a gate wrote down."""
