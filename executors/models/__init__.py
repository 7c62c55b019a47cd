"""Models, and the ways to them.

base      the Model protocol
invoke    the call itself (only executors.calls imports it)
http      the wire: bounds, and an injectable transport (exchange sockets sse origins)
openai    chat completions of any compatible server (openai_wire openai_replies openai_errors)
local     llama.cpp in a child process without network (llama_* gguf isolation weights)
encoder   sentence encoders: free, cached by content, outside the calls
scripted  public fakes, and a fake server on loopback (fake_server fake_acts)
registry  from a spec to a model
prices    prices of tokens
"""
