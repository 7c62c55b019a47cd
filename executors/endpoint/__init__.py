"""A server as one shared resource: one endpoint a provider, model and key.

endpoint  the cap, the cool-down, the limits: what every call passes
retry     how often and how long to try, and after which wait
slots     how many at once
turns     who comes next
buckets   known limits a minute
pacing    unknown limits, found from refusals
"""
