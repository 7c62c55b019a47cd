"""The command line.

app       the commands, and how every ending becomes an exit code
options   options that are declared once
audit     rlm audit
count     rlm count
recurse   rlm recurse; `recurse_run` does it, `recurse_report` prints it, `text_out` writes it
plan      rlm plan
task      options that both of them take; `wired` is what is taken over from a run that is there
stoppable a run on the loop, with Ctrl-C as `stopping` answers it
show      rlm show; `looking` is for one record, and for a check
runs      rlm runs
doctor    rlm doctor
models    rlm models
unfinished what the log of a run without a receipt says
watch     what is told while a run goes on; `watch_tree` is for a recursion
exits     exit codes
faults    how an error is said
interrupt signals that end a run
streams   standard streams that may be closed or full
"""

from rlm.cli.app import main

__all__ = ["main"]
