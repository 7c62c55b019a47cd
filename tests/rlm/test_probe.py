"""Whether a model answers: one bounded request, whatever comes of it is a finding."""

import pytest

from executors.clock import VirtualClock
from executors.errors import AuthError
from executors.messages import ModelRequest
from executors.models.fakes.acts import Reply
from executors.models.fakes.scripted import ScriptedModel
from executors.models.fakes.server import FakeServer
from executors.models.registry import resolve_model
from rlm.probe import PROBE_CAPS, probe

pytestmark = pytest.mark.anyio


async def test_a_model_that_answers_is_quoted_safely_with_its_cost() -> None:
    finding = await probe(ScriptedModel("yes\x1b[2J"), clock=VirtualClock())
    assert finding.status == "ok"
    assert finding.topic == "model scripted:scripted"
    assert finding.text.startswith('answers "yes\\x1b[2J" in 0.0 s; ')
    assert finding.text.endswith(" tokens, 0.000000 USD")


async def test_an_error_is_said_with_what_to_do() -> None:
    def refuses(request: ModelRequest) -> str:
        raise AuthError("the server refused the key", where="http://x", hint="name another key")

    finding = await probe(ScriptedModel(refuses), clock=VirtualClock())
    assert finding.status == "bad"
    assert finding.text == "the server refused the key (http://x)"
    assert finding.hint == "name another key"


async def test_a_server_that_is_not_there_is_bad_after_one_try() -> None:
    model = resolve_model("openai+http://127.0.0.1:9/v1:none")
    finding = await probe(model, clock=VirtualClock())
    assert finding.status == "bad"
    assert "127.0.0.1:9" in finding.text


async def test_a_server_that_fails_is_not_asked_again() -> None:
    async with FakeServer(lambda _: Reply(status=500)) as server:
        finding = await probe(resolve_model(f"openai+{server.base_url}:m"), clock=VirtualClock())
        assert server.requests == 1
    assert finding.status == "bad"


async def test_it_is_asked_once_and_for_little() -> None:
    model = ScriptedModel("yes")
    await probe(model, clock=VirtualClock())
    assert model.calls == 1
    assert model.requests[0].max_tokens <= 64
    assert PROBE_CAPS.calls == 1
