"""Who is asked, one question at a time, and what an answer means.

human        what a person is asked, and what they can say
channel      asks in a gate's name; `asking` waits for an answer, `turnstile` keeps the others waiting
terminal     asks at the terminal
checkpoint   asks before each call of some tools
standing     what was spent and of what, as people are shown it; `annotations` are what others noted
"""
