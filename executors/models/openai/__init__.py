"""Chat completions of OpenAI's server and of any compatible one.

model      the Model
requests   what is sent
replies    what is read
errors     what a refusal means
"""
