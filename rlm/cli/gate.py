"""`rlm gate`: trying a gate's rules on an action."""

from __future__ import annotations

import typer

from rlm.cli.gate_check import EXAMPLES, check

__all__ = ["gate"]

gate = typer.Typer(help="Try the rules of a gate.", add_completion=False)
gate.command("check", short_help="Say what a gate decides about an action.", epilog=EXAMPLES)(check)


@gate.callback()
def _root() -> None:
    """Try the rules of a gate on an action."""
