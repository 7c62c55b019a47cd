"""What people see.

safe      text from outside, made fit for a terminal
lines     lines of styled pieces, the one shape that all of this is made of
text      the tree of a run and the block of its result
progress  rate, time left, unresolved and cost while a run goes on
"""
