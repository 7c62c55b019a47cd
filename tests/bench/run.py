"""`make bench`: every row with its floor, as a table and as JSON. A row that misses its bar fails.

make bench                     all rows but the slow ones of whole corpora
make bench ARGS="calls scan"   some groups
make bench ARGS=accuracy       the labelled tasks (needs `make data`)
make bench ARGS=corpora        whole corpora, beside the bare encoders
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import (  # noqa: E402 - after the path
    accuracy,
    calls,
    corpora,
    encoders,
    journal,
    ledger,
    limits,
    plans,
    recursion,
    roots,
    scan,
    search,
    start,
    wire,
)
from tests.bench.row import Row, table  # noqa: E402 - after the path

GROUPS: dict[str, Callable[[], list[Row]]] = {
    "start": start.rows,
    "calls": calls.rows,
    "journal": journal.rows,
    "ledger": ledger.rows,
    "wire": wire.rows,
    "limits": limits.rows,
    "plans": plans.rows,
    "recursion": recursion.rows,
    "roots": roots.rows,
    "scan": scan.rows,
    "search": search.rows,
    "encoders": encoders.rows,
    "accuracy": accuracy.rows,
    "corpora": corpora.rows,
}
_ON_DEMAND = {"accuracy", "corpora"}


def main(asked: list[str]) -> int:
    """Run the groups that are asked for and return the exit code."""
    names = asked or [name for name in GROUPS if name not in _ON_DEMAND]
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.stderr.write(f"no group {unknown[0]!r}; choose from {', '.join(GROUPS)}\n")
        return 2
    rows: list[Row] = []
    for name in names:
        found = GROUPS[name]()
        sys.stdout.write(f"\n{name}\n{table(found)}\n")
        sys.stdout.flush()
        rows += found
    folder = ROOT / ".bench"
    folder.mkdir(exist_ok=True)
    lines = [{**asdict(row), "ok": row.ok} for row in rows]
    (folder / "rows.json").write_text(json.dumps(lines, indent=2), encoding="utf-8")
    missed = [row.name for row in rows if not row.ok]
    sys.stdout.write(f"\n{len(rows)} rows, {len(missed)} missed; written to .bench/rows.json\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
