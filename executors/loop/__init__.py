"""The tool-calling worker: asks a model, runs what it calls for, and says how it ended.

worker      what a worker is and what bounds it
worked      how it ended, and what it did until then; `tally` adds it up
loop        `work`: rounds, one after another, until something ends them
transcript  the turns; each call of a turn has exactly one result
toolbox     the tools of a round, looked up by name
calling     the tool calls of one round, in order
preparing   one call, held against its tool
running     one call, from the journal's word on it to its result; `telling` is its events
permits     the policy's word, and a person's
governing   the gate's word on a call, and what it hears of it
grouping    which calls of a round may run side by side
streaks     denials, errors and repeats in a row
"""

from executors.loop.loop import work
from executors.loop.permits import decide
from executors.loop.transcript import Transcript
from executors.loop.worked import Ended, EndedBy, Finished, Worked, WorkLog
from executors.loop.worker import (
    AskPerson,
    Guards,
    Policy,
    Question,
    ToolRequest,
    Tools,
    Worker,
)

__all__ = [
    "AskPerson",
    "Ended",
    "EndedBy",
    "Finished",
    "Guards",
    "Policy",
    "Question",
    "ToolRequest",
    "Tools",
    "Transcript",
    "WorkLog",
    "Worked",
    "Worker",
    "decide",
    "work",
]
