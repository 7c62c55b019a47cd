"""Runs on disk: one directory each, which a later session goes on with.

home      where runs live, and how their directory is made
manifest  what a run is about, and its sessions
session   one sitting of a run: its directory under lock, its spool, its journal
log       what happens in a session, written down and folded into the receipt
results   the tally of a run that ended
roots     hashes over what came out and over what was done; `merkle` is how they are made
"""
