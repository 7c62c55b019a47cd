"""The command line.

app       the commands, and how every ending becomes an exit code
options   options that are declared once
count     rlm count
show      rlm show
doctor    rlm doctor
models    rlm models
watch     what is told while a run goes on
exits     exit codes
"""

from rlm.cli.app import main

__all__ = ["main"]
