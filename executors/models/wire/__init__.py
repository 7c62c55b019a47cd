"""The wire: bounded HTTP under a seam, for every provider that is a server.

http        one client: posts to a URL, over connections of our own or an injected transport
bounds      how long and how large a request may be, and the error of each bound
reading     one response as it comes in, whoever carries it
sse         server-sent events, split at line feeds alone
pool        connections to one server, for one event loop
connection  one HTTP/1.1 connection
dialling    how a connection comes about: TCP, tunnels, TLS
injected    the same request over a transport of httpx's
routes      straight to the server, or by a proxy
origins     scheme, host and port: what a key is bound to

addresses     which addresses are everybody's
destinations  where a URL goes, read as browsers read it
pinned        connections of a fetch to the very address that was checked
"""
