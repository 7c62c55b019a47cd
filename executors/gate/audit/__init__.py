"""What a gate writes down: one line an event, for the whole run family in one file.

audit       the writer: lines of checks at once, lines of calls with the journal's commit
call_lines  the line of a model call, which is cheap
bounding    a line in as many bytes as it may have
chain       each line bound to the one before it by the same writer
file        appending, whole lines or nothing
reading     lines back out of the file, torn ones told apart
verifying   what was changed, removed or put elsewhere
rebuilding  what a run family used, added up from its lines
redactor    values as they may be written down
masking     texts without secrets
expressions what finds secrets by their look
secret_keys names of fields whose values are secret
"""
