"""Chat completions of OpenAI's server and of any compatible one.

model      the Model
requests   what is sent
replies    what is read
turns      turns that want tools run, both ways
shapes     reading JSON whose shape nobody promises
errors     what a refusal means
"""
