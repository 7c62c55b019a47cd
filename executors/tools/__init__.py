"""Tools: what a worker may call.

base       what a tool is
arguments  what it is given, held against its schema
results    what it gave, as a bounded and harmless text
fetch      a tool that fetches URLs of public hosts
pages      what a fetch brought
"""
