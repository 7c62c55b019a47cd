"""Chat completions: each failure as its own error, and no key in any of them."""

import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import (
    AuthError,
    ConfigError,
    ContextExceeded,
    ModelError,
    NoQuota,
    RateLimited,
    RequestRejected,
    ServerFault,
)
from executors.models.fakes.acts import (
    Act,
    Reply,
    rate_limited,
)
from executors.models.fakes.server import FakeServer
from executors.models.openai.errors import clipped, read_error, read_retry_after
from executors.models.openai.model import OpenAIModel
from executors.secrets import Secret
from tests.executors.asks import KEY, ask, error, failure, model_at

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- statuses
@pytest.mark.parametrize(
    ("act", "wanted", "retryable", "paid"),
    [
        (error(401), AuthError, False, False),
        (error(403), AuthError, False, False),
        (error(402), NoQuota, False, False),
        (error(429), RateLimited, True, False),
        (error(429, code="insufficient_quota"), NoQuota, False, False),
        (error(400), RequestRejected, False, False),
        (error(404), RequestRejected, False, False),
        (error(422), RequestRejected, False, False),
        (error(418), RequestRejected, False, False),
        (error(413), ContextExceeded, False, False),
        (error(400, code="context_length_exceeded"), ContextExceeded, False, False),
        (error(400, "maximum context length is 4096 tokens"), ContextExceeded, False, False),
        (error(408), ServerFault, True, False),
        (error(409), ServerFault, True, False),
        (error(500), ServerFault, True, False),
        (error(503), ServerFault, True, False),
        (error(529), ServerFault, True, False),
        (error(504), ServerFault, True, True),
        (Reply(status=502, body=b"<html>Bad Gateway</html>"), ServerFault, True, False),
        (Reply(status=500), ServerFault, True, False),
        (Reply(status=400, body=b'"text"'), RequestRejected, False, False),
        (Reply(status=400, body=b'{"error": "plain"}'), RequestRejected, False, False),
        (Reply(status=204), RequestRejected, False, False),
    ],
)
async def test_each_status_is_its_own_error(
    act: Act, wanted: type[ModelError], retryable: bool, paid: bool
) -> None:
    found = await failure(act)
    assert type(found) is wanted
    assert (found.retryable, found.maybe_paid) == (retryable, paid)


@pytest.mark.parametrize("act", [error(402), error(429, code="insufficient_quota")])
async def test_an_empty_account_is_called_quota_and_its_key_is_not_blamed(act: Act) -> None:
    found = await failure(act)
    assert (found.code, found.hint) == (
        "quota",
        "the account has no quota left: see its billing",
    )


async def test_a_404_names_the_model_and_the_base_url() -> None:
    async with FakeServer(error(404, "model not found")) as server:
        with pytest.raises(RequestRejected) as caught:
            await model_at(server).generate(ask())
        assert str(caught.value) == (
            "the server answered 404: 'model not found'\n"
            f"model 'gpt-x' at {server.base_url}\n"
            f"check the model's name, and that {server.base_url} is the base URL of its server"
        )


@pytest.mark.case("K2-1", "K2-7")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 31 Feb 2026 99:99:99 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Thursday, 01-Jan-26 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 31 Dec 2025 23:59:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(headers, datetime(2026, 1, 1, tzinfo=UTC)) == seconds


def test_a_date_is_compared_with_the_servers_own_clock() -> None:
    server = datetime(2026, 1, 1, tzinfo=UTC)
    headers = {
        "date": format_datetime(server, usegmt=True),
        "retry-after": format_datetime(server + timedelta(seconds=20), usegmt=True),
    }
    assert read_retry_after(headers, server + timedelta(hours=1)) == 20.0


@pytest.mark.case("K2-7")
async def test_a_429_carries_the_servers_wish() -> None:
    found = await failure(rate_limited("3"))
    assert isinstance(found, RateLimited)
    assert found.retry_after == 3.0
    found = await failure(Reply(status=503, headers=(("retry-after", "8"),)))
    assert isinstance(found, ServerFault)
    assert (found.retry_after, found.status) == (8.0, 503)


# ---------------------------------------------------------------- secrets
@pytest.mark.case("K15-16", "K15-17")
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
async def test_a_key_that_the_server_echoes_is_in_no_message_and_no_traceback(status: int) -> None:
    body = orjson.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}})
    found = await failure(Reply(status=status, body=body))
    shown = "".join(traceback.format_exception(found)) + repr(found) + str(found)
    assert KEY not in shown
    assert "[secret]" in shown


async def test_a_model_shows_no_key() -> None:
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", key=Secret(KEY))
    with pytest.raises(ModelError) as caught:
        await model.generate(ask())
    await model.aclose()
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown + repr(model) + repr(model.info) + repr(vars(model))
    assert model.info.key_fingerprint == Secret(KEY).fingerprint


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "schlüssel", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unshown(key: str) -> None:
    with pytest.raises(ConfigError, match="no header can carry") as caught:
        OpenAIModel("m", key=Secret(key))
    assert key not in str(caught.value)


def test_a_key_over_plain_http_to_another_machine_is_warned_of() -> None:
    warned: list[str] = []

    def make(url: str, *, keyed: bool = True) -> None:
        OpenAIModel("m", base_url=url, key=Secret(KEY) if keyed else None, warn=warned.append)

    for quiet in ("http://localhost:1/v1", "http://[::1]/v1", "https://models.example/v1"):
        make(quiet)
    make("http://models.example/v1", keyed=False)
    assert warned == []
    make("http://models.example/v1")
    (warning,) = warned
    assert warning.startswith("the key for model 'm' at http://models.example/v1 goes over plain")


def test_foreign_text_in_a_message_is_one_short_plain_line() -> None:
    assert clipped("a\x1b[31m\r\nb\u202e \u2028c") == "a\ufffd[31m b\ufffd c"
    assert len(clipped("x" * 10_000)) == 300
    assert clipped(b"\xff\xfe") == "\ufffd\ufffd"


@given(st.binary(max_size=300))
def test_any_error_body_is_read(body: bytes) -> None:
    says = read_error(body)
    assert says.message.isprintable()
    assert len(says.message) <= 300
