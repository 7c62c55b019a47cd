"""What runs, and what bounds it: the ground floor, importing none of the other three packages.

Layout:

- `errors` `usage` `ids` `clock` `secrets` `messages` `events`: values that everything shares
- `fences`: text from outside, shown to a model as data
- `places`: how work that only waits for the disk makes room for other work
- `order`: what can be done when, of things that wait for each other
- `private`: files that their owner alone may read
- `threads`: work in a thread that nobody walks away from
- `boundary`: where what a caller's function raised becomes a value
- `makers`: values made fast, where thousands a second are
- `replies` `wrappings`: JSON out of a model's text, or why there is none
- `tools`: what a tool is, what it may be given, what is shown of it; files, programs, URLs
- `models`: the Model protocol, the wires to providers, local weights, encoders, prices
- `endpoint`: a server as one shared resource: cap, pace, and the only retry layer
- `gate`: rules, budget, people and audit: the one place that all calls and tools pass
- `leases` `lease_allowance`: both of them shared out over several processes
- `journal`: calls on disk, so that none is paid twice
- `calls`: the one pipeline of a model call
- `loop`: the worker, which asks a model and runs the tools that it calls for
- `engine`: pulls work under a cap, here or in other processes, and turns failures into values

Internal: the documented import is `rlm`.
"""

__all__ = ["__rlm_distribution__"]

__rlm_distribution__ = "rlm-recurse"
