"""Where the books of a run family stand: its ledger and its audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["AUDIT", "LEDGER", "book"]

LEDGER: Final = "RLM_LEDGER"
AUDIT: Final = "RLM_AUDIT"
_NAMES: Final = {LEDGER: "ledger.sqlite", AUDIT: "audit.jsonl"}


def book(
    variable: str,
    *,
    configured: str | None,
    environment: Mapping[str, str],
    directory: Path | None,
) -> Path | None:
    """Return the file that the configuration names, else the environment, else that of the run.

    Args:
        variable: `LEDGER` or `AUDIT`: how the parent process passes its own on to its children.
        configured: from the configuration.
        directory: of the run.

    Returns:
        None where nobody names one: it is kept in memory.
    """
    named = configured or environment.get(variable)
    if named:
        return Path(named)
    return None if directory is None else directory / _NAMES[variable]
