"""The books of a run family: what may be spent, was spent, and is set aside."""
