"""The command line.

app       the commands, and how every ending becomes an exit code
options   options that are declared once
audit     rlm audit
count     rlm count
recurse   rlm recurse; plan: rlm plan; `task` is their options, `wired` what it takes over from its run
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
