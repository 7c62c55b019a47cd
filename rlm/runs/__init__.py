"""Runs on disk: one directory each, which a later session goes on with.

home      where runs live, and how their directory is made
manifest  what a run is about, and its sessions
session   one sitting of a run: its directory under lock, its spool, its journal
log       what happens in a session, written down and folded into the receipt
results   the tally of a run that ended; `exports` knows the files that it was written to
roots     hashes over what came out and over what was done; `merkle` is how they are made
checking  a run against its own files
looks     how one record was judged, by which session and in the answer to which call
told      calls of a run without a receipt, from its log
keeping   which runs there are, and which may go
forgetting  erases one record; `traces` finds what was said of it, `spools` gives way to its spool
foreign   directories that were made elsewhere
"""
