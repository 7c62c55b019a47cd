"""What a run remembers of its calls.

records        the Journal protocol, and one that remembers nothing
journal        the journal of a run: earlier sessions by index, this one in its own segment
segment        one append-only file a process, and its commits; `syncing` is the waiting thread
lines          the lines of a segment; `filed_replies`, `filed_tools` and `failures` are the
               larger parts of them
blobs          what is too long for a line
index          index.sqlite, derived from the segments by `indexing`
lock           one coordinator at a time; `filesystems` says where SQLite is not safe
stream         the journal of a worker that shares no disk
answers        all answers of a run, in the order in which they came
replay         a recorded run as a journal
forget         erases contents from the journal of a run
reading        whole lines of segments, torn tails, damaged lines
"""
