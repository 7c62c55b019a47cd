"""What decides the shape of a run: which parts a task has, and in which order they are done.

Layout:

- `routes`: from the shape of a question to the way it is answered
- `completeness`: the guard that no question for everything is answered by a search
- `shapes`: what kind of question it is: asked of each record, of everything, after one thing
- `complexity` `vocabulary` `marks`: how large a task looks, from its text alone
- `lookups`: what a task names that code can look for: quoted terms and ids
- `families`: who decides how a task is taken apart: its worker, a number, or a corpus' size
- `plan`: steps that may wait for each other, acyclic by construction
- `rules`: plans without a model, by the parts that a task is written in
- `steps` `prompts` `plan_text` `plan_cache`: plans by a model, checked in code
- `running` `results`: carrying out a plan, and what came of its steps
- `tree`: what became of a task, node by node

Internal: the documented import is `rlm`.
"""

__all__ = ["__rlm_distribution__"]

__rlm_distribution__ = "rlm-recurse"
