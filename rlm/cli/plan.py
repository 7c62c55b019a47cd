"""`rlm plan`: what a recursion would take is printed, and nothing is asked."""

from __future__ import annotations

import sys
from typing import Final

from executors.errors import ValidationError
from rlm.cli.exits import Exit
from rlm.cli.printing import print_json
from rlm.cli.task import Asked, asked, command

__all__ = ["EXAMPLES", "plan"]

EXAMPLES: Final = """\b
Examples:
  rlm plan "Which mails mention 'refund'?" --corpus mails.jsonl --mode partition --model openai:gpt-4.1
  rlm plan "Compare the three offers." --corpus offers/ --count 3 --model openai:gpt-4.1 --price 2,8
"""
_WORDS: Final = """Say how a task would be taken apart, and what that costs at least and at most.

No model is asked, no key is needed and nothing is kept. A tree that rules and sizes decide is exact;
where a model decides, the bounds are said.
"""


def _plan(checked: Asked) -> int:
    for option, given in (
        ("--run", checked.options.run),
        ("--out", checked.target),
        ("--gate", checked.wiring.gate),
        ("--budget", checked.wiring.top_up),
    ):
        if given is not None:
            raise ValidationError(
                f"{option} has no effect: a plan does nothing that could be kept, or forbidden",
                hint=f"leave it out, or: rlm recurse … {option} …",
            )
    import anyio  # heavy, as all that plans

    from rlm.recursions.planning import Planning

    found = anyio.run(Planning(checked.task, checked.wiring, checked.options).plan)
    if checked.as_json:
        from pydantic import TypeAdapter  # heavy, and for files and JSON alone

        from rlm.recursions.foreseen import RecursionPlan

        halted = found.halted_by
        print_json(
            {
                **TypeAdapter(RecursionPlan).dump_python(found, mode="json"),
                "halted_by": None if halted is None else halted.name,
            }
        )
        return Exit.DONE
    from rlm.render.lines import write_lines
    from rlm.render.tree_plan import plan_lines

    write_lines(plan_lines(found), sys.stdout)
    return Exit.DONE


plan = command(asked, _plan, _WORDS)
"""Takes the options of `asked`."""
