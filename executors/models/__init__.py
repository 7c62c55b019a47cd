"""Models, and the ways to them.

base      the Model protocol
invoke    the call itself (only executors.calls.calls imports it)
tool_calls tool calls as providers write them, read strictly
taught    tools for models that know of none
shown     the text of an answer as it comes
breaker   a model that is left alone for a while when it fails
fallback  several models, asked in order
masked    a model that sees no personal data
masking   how personal data is found in texts
wire      bounded HTTP, for every provider that is a server
openai    chat completions of any compatible server
local     llama.cpp on this machine
encoders  sentence encoders: free, cached by content, outside the calls
fakes     public fakes, and a fake server on loopback
registry  from a spec to a model
price     what the tokens of a model cost
prices    where prices come from: the caller, or what providers publish
published what providers publish, from an installed table
"""
