"""What was done, by whom, when, and at what cost: folds over the events of a run.

Layout:

- `receipts`: the receipt, and the fold that makes it
- `nodes` `sittings` `totals`: what each node did, what each session did, and what it cost
- `lineage`: a tree of nodes as a graph
"""
