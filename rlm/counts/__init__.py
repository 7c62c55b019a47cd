"""One session of a count, from its directory to its outcome.

run      the whole: opens the session, reads, gathers labels, hands over to the rest
stage    judging: what is left to judge, here or on a cluster, and the tally of it
ending   the one outcome, with its receipt, also where the disk takes nothing any more
"""
