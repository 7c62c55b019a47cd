"""How one check comes to its end.

cases        an action on its way
deciding     the way: judged, put to a person, counted, written down
judging      what bounds and rules say
consulting   what a person says
admitting    counts it, and sets aside what it may cost
booking      writes it down
executed     what was done, where the gate runs it itself
"""
