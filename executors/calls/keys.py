"""The key of a model call: a hash of everything that decides its answer."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from executors.ids import ContentKey
from executors.messages import Message, ModelRequest
from executors.models.base import ModelInfo

__all__ = ["CallKeys", "call_key"]

_KEPT: Final = 32
_KEPT_CHARACTERS: Final = 50_000


class CallKeys:
    """Makes the keys of one model's calls.

    All but the last text is the same for a whole count, so it is hashed once and its digest kept.
    """

    def __init__(self, info: ModelInfo) -> None:
        text = repr((info.origin, info.provider, info.name, info.identity))
        self._model = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
        self._begun: dict[tuple[str, ...], blake2b] = {}

    def of(self, request: ModelRequest, ordinal: int) -> ContentKey:
        """Hash model, parameters, messages and the caller's sample ordinal; 128 bits as hex.

        Concurrency, paths, keys and code are left out: they change nothing that a model reads. Each
        part carries its length, so that no two different requests meet.
        """
        *parts, last = _parts(request, ordinal)
        begun = tuple(parts)
        digest = (self._begun.get(begun) or self._begin(begun)).copy()
        digest.update(_framed(last))
        return ContentKey(digest.hexdigest())

    def _begin(self, parts: tuple[str, ...]) -> blake2b:
        digest = self._model.copy()
        for part in parts:
            digest.update(_framed(part))
        if sum(map(len, parts)) <= _KEPT_CHARACTERS:  # long histories are not worth keeping
            if len(self._begun) >= _KEPT:
                self._begun.clear()
            self._begun[parts] = digest
        return digest


def call_key(info: ModelInfo, request: ModelRequest, ordinal: int) -> ContentKey:
    """Return one key; see `CallKeys.of`, which is for many."""
    return CallKeys(info).of(request, ordinal)


def _parts(request: ModelRequest, ordinal: int) -> list[str]:
    parameters = _parameters(
        request.max_tokens,
        None if request.temperature is None else float(request.temperature),
        request.seed,
        request.top_logprobs,
        request.stop,
        ordinal,
    )
    parts = [parameters, request.schema.canonical if request.schema else ""]
    if request.tools:
        parts += ("tools", request.tool_choice or "", *[tool.canonical for tool in request.tools])
    for message in request.messages:
        parts += (message.role, message.content)
        if message.calls or message.call_id is not None or message.blocks is not None:
            parts += ("turn", _turn(message))
    return parts


def _turn(message: Message) -> str:
    """Return what a turn says besides its text; written out, since classes may get more fields."""
    calls = [(call.id, call.name, call.arguments) for call in message.calls]
    blocks = message.blocks
    beside = None if blocks is None else (blocks.provider, blocks.model, blocks.data)
    return repr((calls, message.call_id, beside))


def _framed(part: str) -> bytes:
    return f"{len(part)}:{part}".encode("utf-8", "surrogatepass")


# The same few in a whole run. Typed, so that what is equal but written otherwise stays apart.
@lru_cache(maxsize=256, typed=True)
def _parameters(*values: object) -> str:
    return repr(values)
