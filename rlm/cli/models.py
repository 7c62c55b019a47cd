"""`rlm models`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from rlm.cli.exits import Exit
from rlm.cli.options import Json
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from rlm.models import Choice
    from rlm.render.lines import Line

__all__ = ["models"]


def models(*, json_: Json = False) -> int:
    """Say how to name a model or an encoder, and which of them are here."""
    # What is looked up here loads numbers and encoders' names; --help needs neither.
    from executors.models.published import prices_source
    from rlm.models import choices

    found, source = choices(), prices_source()
    prices = None if source is None else str(source)
    if json_:
        print_json({"choices": [asdict(choice) for choice in found], "prices": prices})
        return Exit.DONE
    from rlm.render.lines import write_lines

    write_lines(_page(found, prices), sys.stdout)
    return Exit.DONE


def _page(found: list[Choice], prices: str | None) -> list[Line]:
    from rlm.render.lines import Piece, line

    titles = {
        "model": "models that answer, for --model and --judge chat or logprob",
        "encoder": "encoders, which judge by your labels: for --encoder, or no option at all",
        "weights": "weights",
    }
    lines: list[Line] = []
    for kind, title in titles.items():
        lines.append(line(Piece(title, "strong")))
        lines += [_row(choice) for choice in found if choice.kind == kind]
    table = (
        prices or "none installed: pip install 'rlm-recurse[prices]'; a run is priced by --price"
    )
    return [*lines, line(Piece("published prices", "strong")), line(f"  {table}")]


def _row(choice: Choice) -> Line:
    from rlm.render.lines import Piece, line
    from rlm.render.safe import plain

    match choice.here:
        case None:
            standing = Piece("")
        case True:
            standing = Piece("  (here)", "good")
        case False if choice.extra is not None:
            standing = Piece(f"  (not here: pip install 'rlm-recurse[{choice.extra}]')", "dim")
        case False:
            standing = Piece("  (not here)", "dim")
    what = plain(choice.what, 200)
    if not what:
        standing = Piece(standing.text.lstrip(), standing.style)
    return line(f"  {choice.form:<38} ", what, standing)
