"""`rlm recurse`: one hard task, taken apart, worked on, checked, and put together."""

from __future__ import annotations

from typing import Final

from rlm.cli.task import Asked, asked, command

__all__ = ["EXAMPLES", "recurse"]

EXAMPLES: Final = """\b
Examples:
  rlm recurse "What do these customers complain of?" --corpus tickets.csv --count 4
  rlm recurse "How many mails mention 'refund'?" --corpus mails.jsonl
  rlm recurse "Compare the three offers." --corpus offers/ --retrieval read --contract "each one named"
"""
_WORDS: Final = """Do a task that is too much for one call of a model, and say how far it came.

The result goes to standard output, everything else to standard error. Without --model the weights on
this machine work, and rules plan and route.
"""


def _run(checked: Asked) -> int:
    from rlm.cli.recurse_run import run_recurse  # models and numbers load where work begins

    return run_recurse(checked)


recurse = command(asked, _run, _WORDS)
"""Takes the options of `asked`."""
