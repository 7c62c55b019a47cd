"""The one pipeline of a model call.

calls     reserve, single flight, journal, endpoint, settle
keys      what decides an answer, as one key
log       the events of one call
payment   what one call draws on the budget
tariff    what a call may cost, and did
"""
