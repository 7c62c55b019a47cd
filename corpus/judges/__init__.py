"""Judges: one protocol, each says what it is.

base      the protocol, and the window that a judge looks at
chat      a chat model answers for each item, under aliases
logprob   the probability of the answer's token
rule      a predicate in code
encoder   a sentence encoder under a calibrated head
head      the calibrated head
"""
