"""Who checks a result, who tries again, and what a check says.

Layout:

- `verdict` `grades`: what a check says of a result, as a value and out of a grader's text
- `evaluator` `critic` `exhibit` `prompts`: who grades a result, what is shown of it, in which words
- `arbiters` `sensors` `refinement`: checks by code, with a deadline, and trying again until they hold
- `honouring` `calibration`: whether a request was honoured, and whether a judge of that can be trusted
"""
