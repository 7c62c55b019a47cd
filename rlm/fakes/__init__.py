"""Scripts for fake models: a judge that decides by a rule, and workers that play a whole tree."""
