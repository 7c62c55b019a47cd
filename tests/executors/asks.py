"""Requests and models that several tests of this folder start from."""

import orjson
import pytest

from executors.errors import ModelError
from executors.messages import Message, ModelReply, ModelRequest, ResponseSchema
from executors.models.fakes.acts import Received, Reply
from executors.models.fakes.server import FakeServer, Script
from executors.models.openai.model import OpenAIModel
from executors.models.wire.bounds import Bounds
from executors.secrets import Secret

KEY = "sk-canary-0123456789abcdef"
QUICK = Bounds(connect=1.0, headers=0.3, idle=0.2, total=1.0)


def ask(
    text: str = "hello",
    *,
    max_tokens: int = 16,
    temperature: float | None = None,
    stream: bool = False,
    schema: ResponseSchema | None = None,
    top_logprobs: int | None = None,
) -> ModelRequest:
    """Return a request with one user message."""
    return ModelRequest(
        messages=(Message(role="user", content=text),),
        max_tokens=max_tokens,
        temperature=temperature,
        stream=stream,
        schema=schema,
        top_logprobs=top_logprobs,
    )


def model_at(server: FakeServer, *, bounds: Bounds | None = None, key: str = KEY) -> OpenAIModel:
    """Return a model behind a fake server."""
    return OpenAIModel("gpt-x", base_url=server.base_url, key=Secret(key), bounds=bounds)


async def answer(script: Script, request: ModelRequest | None = None) -> ModelReply:
    """Return what a model behind a server with that script answers."""
    async with FakeServer(script) as server:
        model = model_at(server)
        try:
            return await model.generate(request or ask())
        finally:
            await model.aclose()


async def failure(script: Script, request: ModelRequest | None = None) -> ModelError:
    """Return the error that a model behind a server with that script raises."""
    with pytest.raises(ModelError) as caught:
        await answer(script, request)
    return caught.value


def error(status: int, message: str = "no", **fields: str) -> Reply:
    """Return an error response as OpenAI's server words it."""
    return Reply(status=status, body=orjson.dumps({"error": {"message": message, **fields}}))


def received(body: bytes = b"{}") -> Received:
    """Return a request as a fake server sees it."""
    return Received(index=0, method="POST", path="/v1/chat/completions", head=b"", body=body)
