"""What people see.

safe      text from outside, made fit for a terminal
lines     lines of styled pieces, the one shape that all of this is made of
text      the tree of a run and the block of its result
outcome   how a recursion ended: its result, its verdict, its cost, its tree
tree_state  a task tree, folded from events; `tree_receipt` from a receipt
tree_lines  the tree as lines, no more than there is room for; `tree_live` paints them again and again
tree_plan what a recursion would take; `forecast`: what a count would
progress  rate, time left, unresolved and cost while a run goes on
"""
