"""A language model on this machine: llama.cpp in a child process without network.

model      the Model
weights    where weights are found, and their hash
gguf       the header of a weights file, read without an engine
backends   what both engines look like: `server` (xllamacpp), `native` (llama-cpp-python)
prompts    chat templates, and where a prompt is cut
worker     the child from outside; `child` is its inside
isolation  the filter that leaves a process no network
"""
