"""`--dry-run`: what a count would take is printed, and nothing is asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from rlm.cli.exits import Exit
from rlm.cli.printing import print_json
from rlm.cli.watch import Watch
from rlm.forecasts.dry_run import plan_with

if TYPE_CHECKING:
    from corpus.questions import Question
    from rlm.corpora import Corpus
    from rlm.forecasts.forecast import CountPlan
    from rlm.options.options import CountOptions

__all__ = ["run_dry"]


def run_dry(
    question: Question, corpus: Corpus | None, options: CountOptions, *, as_json: bool
) -> int:
    """Plan a count, print the plan to standard output, and return the exit code."""
    with Watch(options.caps, stream=sys.stderr) as watch:
        plan = anyio.run(_planned, question, corpus, replace(options, on_event=watch))
    if as_json:
        print_json(_data(plan))
    else:
        from rlm.render.forecast import forecast_lines
        from rlm.render.lines import write_lines

        write_lines(forecast_lines(plan), sys.stdout)
    return Exit.DONE


async def _planned(question: Question, corpus: Corpus | None, options: CountOptions) -> CountPlan:
    return await plan_with(question, corpus, options)


def _data(plan: CountPlan) -> dict[str, object]:
    """Return plain data; amounts of USD are text, so that no digit is lost."""
    from pydantic import TypeAdapter  # heavy, and for files and JSON alone

    from rlm.forecasts.forecast import CountPlan as Plan

    halted = plan.halted_by
    return {
        **TypeAdapter(Plan).dump_python(plan, mode="json"),
        "halted_by": None if halted is None else halted.name,
    }
