"""Tools: what a worker may call.

base       what a tool is
arguments  what it is given, held against its schema
results    what it gave, as a bounded and harmless text
fetch      a tool that fetches URLs of public hosts
pages      what a fetch brought
files      tools that read, list and search a folder, and write there on demand
rooted     that folder, which nothing leads out of
grepping   finding lines in its files
writing    writing and editing them
shell      a tool that runs programs, without a shell
"""
