"""What decides the shape of a run; pure, and below `rlm` alone.

Layout:

- `routes`: from the shape of a question to the way it is answered, with the completeness guard

Internal: the documented import is `rlm`.
"""

__all__ = ["__rlm_distribution__"]

__rlm_distribution__ = "rlm-recurse"
