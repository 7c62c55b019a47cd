"""What a caller may choose about a count, checked before anything is read or spent.

Layout:

- `options`: the options themselves
- `records`: as a run keeps them
- `other_model`: what a run that goes on with another model does not take over
"""
