"""What bounds a run, and decides about all that it does.

decisions   Allow | Deny | Ask | Halt
allowance   atomic reserve -> settle against finite caps; what calls draw on
actions     what is to be done, as plain values
config      the configuration, one section a file
rules       what it forbids and asks about, in a fixed order; `patterns` run in linear time
ledger      what a run family may spend, in one file for all its processes
audit       what was decided, done and spent, in bound lines
people      who is asked, and what an answer means
course      how one check comes to its end: judged, asked about, counted, written down
gate        all of these together: check, record, allows
governor    what those see of a gate who call models and tools
governed    a gate as that; `audited` is what calls draw, written down, `outlet` where texts may go
"""
