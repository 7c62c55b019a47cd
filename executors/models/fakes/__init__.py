"""Public fakes, also under `rlm.testing`.

scripted   a model in this process
server     an OpenAI-compatible server on loopback that misbehaves on demand
limited    a script for it that lets so many requests a while through
acts       what the server can do with a request
received   a request as the server gets it
"""
