"""The wire: bounded HTTP under a seam, for every provider that is a server.

http       one client: bounds, and an injectable transport
exchange   one request with its answer, and the faults that each bound stands for
sse        server-sent events, split at line feeds alone
sockets    the transport that is measured to be cheap
origins    scheme, host and port: what a key is bound to
"""
