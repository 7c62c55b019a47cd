"""Chat completions of any OpenAI-compatible server.

An output bound above 21,333 tokens is streamed: such an answer can take longer than the ten
minutes after which proxies and servers drop a silent connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from executors.errors import ConfigError, ModelError, TransportFault
from executors.messages import ModelReply, ModelRequest
from executors.models.base import ModelInfo
from executors.models.openai.errors import ServerSays, error_of_reply, read_error
from executors.models.openai.replies import Asked, StreamFold, read_reply
from executors.models.openai.requests import Dialect, LimitName, Part, encode, refused_part
from executors.models.taught import has_tools, taught, understood
from executors.models.wire.http import Bounds, HttpReply, Wire
from executors.models.wire.origins import OPENAI_URL, checked_base_url, is_loopback, origin_of
from executors.secrets import Secret

if TYPE_CHECKING:
    import httpx

__all__ = ["STREAM_ABOVE", "OpenAIModel"]

STREAM_ABOVE: Final = 21_333
"""Output tokens up to which a reply is awaited whole; from one more on it is streamed."""

_NAMING: Final = frozenset({400, 422})
# The first, one without temperature, one without a schema, one without tools, one that bounds the
# output by the other name.
_MOST_REQUESTS = 5
_LOSSES: Final[dict[Part, str]] = {
    "temperature": "temperature: it is left out from now on",
    "schema": "response schema: replies are no longer held to a form",
    "tools": "tools: they are told of in words from now on",
}
_JSON_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": "rlm-recurse",
}
_STREAM_HEADERS: Final = {**_JSON_HEADERS, "accept": "text/event-stream"}
_log = logging.getLogger("rlm.models")


class _Refused(Exception):
    """A 400 or 422, with what is said of it: it may name a parameter that we can do without."""

    def __init__(self, error: ModelError, says: ServerSays) -> None:
        super().__init__()
        self.error = error
        self.says = says


class OpenAIModel:
    """A model behind a chat-completions server.

    Never retries, with one exception: a 400 or 422 that names a parameter which the server does not
    take (temperature, response schema, tools, the name of the output bound) is answered by the same
    request without it, once; the object remembers. `ModelReply.requests` counts them all.

    Args:
        name: the model's name at the server.
        base_url: up to and with `/v1`; the key goes to this origin and nowhere else.
        key: None sends no Authorization header.
        transport: an httpx transport instead of connections of our own.
        context_window: tokens of prompt plus output, when known.
        max_concurrency: calls that the server takes at once, when known.
        limit: the parameter that bounds the output; None chooses by the server.
        warn: called once with each thing that the user should know; None logs it.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str = OPENAI_URL,
        key: Secret | None = None,
        bounds: Bounds | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        context_window: int | None = None,
        max_concurrency: int | None = None,
        limit: LimitName | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._base_url = checked_base_url(base_url)
        self._where = f"model {name!r} at {self._base_url}"
        host = urlsplit(self._base_url).hostname
        self._warn = warn or _log.warning
        self._wire = Wire(
            f"{self._base_url}/chat/completions",
            where=self._where,
            bounds=bounds or Bounds(),
            transport=transport,
        )
        # Servers other than OpenAI's own know the older name best.
        newer = self._base_url == OPENAI_URL
        self._dialect = Dialect(limit=limit or ("max_completion_tokens" if newer else "max_tokens"))
        self._key = key
        self._info = ModelInfo(
            provider="openai",
            name=name,
            origin=origin_of(self._base_url),
            key_fingerprint=key.fingerprint if key else "",
            context_window=context_window,
            structured_output=True,
            logprobs=True,
            max_concurrency=max_concurrency,
        )
        if key:
            _check_key(key)
            if urlsplit(self._base_url).scheme == "http" and not is_loopback(host):
                self._warn(
                    f"the key for {self._where} goes over plain http: anyone between reads it"
                )

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._generate(request, None)

    async def generate_streaming(
        self, request: ModelRequest, on_text: Callable[[str], None]
    ) -> ModelReply:
        return await self._generate(request, on_text)

    async def _generate(
        self, request: ModelRequest, on_text: Callable[[str], None] | None
    ) -> ModelReply:
        for sent in range(1, _MOST_REQUESTS + 1):
            used = self._dialect
            try:
                reply = await self._ask(request, used, on_text)
                return reply if sent == 1 else replace(reply, requests=sent)
            except _Refused as refused:
                part = refused_part(used, refused.says, request)
                if part is None or sent == _MOST_REQUESTS:
                    refused.error.attempts = sent
                    raise refused.error from None
                self._do_without(part)
            except ModelError as error:
                error.attempts += sent - 1
                raise
        raise AssertionError("the last request returns or raises")

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _ask(
        self, request: ModelRequest, dialect: Dialect, on_text: Callable[[str], None] | None
    ) -> ModelReply:
        if not dialect.tools and has_tools(request):
            # What it writes is JSON, and no text for whoever watches.
            reply = await self._ask(taught(request), dialect, None)
            return understood(reply, request)
        stream = request.stream or request.max_tokens > STREAM_ABOVE or on_text is not None
        body = encode(self._info.name, request, dialect, stream=stream, where=self._where)
        asked = Asked(
            where=self._where,
            model=self._info.name,
            max_tokens=request.max_tokens,
            temperature=request.temperature if dialect.temperature else None,
        )
        if stream:
            return await self._listen(body, asked, on_text)
        whole = await self._wire.post(body, self._with_key(_JSON_HEADERS))
        assert whole is not None
        return self._read(whole, asked)

    async def _listen(
        self, body: bytes, asked: Asked, on_text: Callable[[str], None] | None
    ) -> ModelReply:
        fold = StreamFold(asked, on_text)
        try:
            reply = await self._wire.post(body, self._with_key(_STREAM_HEADERS), fold.feed)
        except TransportFault:
            # The answer had ended; what broke, or never came, is the end of the stream alone.
            if (ended := fold.reply()) is None:
                raise
            return ended
        if reply is not None:
            return self._read(reply, asked)
        whole = fold.reply()
        if whole is None:
            raise TransportFault("the stream ended before its answer did", where=self._where)
        return whole

    def _read(self, reply: HttpReply, asked: Asked) -> ModelReply:
        if reply.status == 200:
            return read_reply(reply.body, asked)
        says = read_error(reply.body)
        error = error_of_reply(reply, says, base_url=self._base_url, where=self._where)
        if reply.status in _NAMING:
            raise _Refused(error, says)
        raise error

    def _do_without(self, part: Part) -> None:
        """Remember what the server does not take; calls beside this one may know it already."""
        if not self._dialect.takes(part):
            return
        self._dialect = self._dialect.without(part)
        if part in _LOSSES:
            self._warn(f"{self._where} takes no {_LOSSES[part]}")

    def _with_key(self, headers: dict[str, str]) -> dict[str, str]:
        if self._key:
            return {**headers, "authorization": f"Bearer {self._key.reveal()}"}
        return headers


def _check_key(key: Secret) -> None:
    if not (key.reveal().isascii() and key.reveal().isprintable()) or " " in key.reveal():
        raise ConfigError(
            "the key holds characters that no header can carry",
            hint="check the variable that it comes from for quotes, spaces and line ends",
        )
