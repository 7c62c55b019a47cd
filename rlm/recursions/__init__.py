"""One run of `recurse`, from its directory to its outcome.

Layout:

- `wiring` `options`: who answers and what bounds them; how a task is taken apart, and what a child
  inherits of that
- `rebuilding`: both as an earlier session had them
- `run`: the run directory, the journal and the log around a tree
- `forest`: what all nodes of one tree share: calls, caps, the halt that stops them all
- `node` `bounded`: one node: which way it goes, and what of it comes back whatever it raises
- `worker` `spawning`: a worker with its tools, and the tool by which it hands work to children
- `fanout` `partition`: parts that are decided before any worker runs
- `scanning` `reading` `searching` `looking`: the corpus, judged, shown in a message, searched, or
  looked into by tools
- `verifying` `leaves` `sensing`: who checks what came out, and which sensor
- `planning` `drafting` `costing` `foreseen`: what it would take: as a whole, part by part, call by
  call, as a value
- `checking`: a run against its own files
- `results` `ending`: what a node hands up, and the one outcome of the run
- `prompts`: what workers are told
"""
