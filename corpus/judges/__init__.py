"""Judges: one protocol, each says what it is.

base      the protocol, and the window that a judge looks at
chat      a chat model answers for each item, under aliases
answers   what its reply says of each item
narrowing texts that failed together are asked in halves, so that one costs its own verdict
order     the order in which items are shown, another one in each pass
logprob   the probability of the answer's token
readout   from token probabilities to the mass of each option
rule      a predicate in code
encoder   a sentence encoder under a calibrated head
head      the calibrated head
notes     what to know of a judged window besides its verdicts
"""
