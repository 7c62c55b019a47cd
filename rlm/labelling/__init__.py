"""Labelling: a person says what some records are.

file       labels files, read
writer     labels files, appended so that each label survives a crash
session    one record, one key, saved
picking    which record is asked about next
screen     the session in front of a person; `terminal` reads the keys
asking     all of it, for a count that wants labels
"""
