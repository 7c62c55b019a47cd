"""What a run remembers of its calls.

records   the Journal protocol, and one that remembers nothing
"""
