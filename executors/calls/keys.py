"""The key of a model call: a hash of everything that decides its answer."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from executors.ids import ContentKey
from executors.messages import Message, ModelRequest
from executors.models.base import ModelInfo

__all__ = ["call_key"]

_KEPT_CHARACTERS = 50_000
_digests: dict[ModelInfo, blake2b] = {}


def call_key(info: ModelInfo, request: ModelRequest, ordinal: int) -> ContentKey:
    """Hash model, parameters, messages and the caller's sample ordinal; 128 bits as hex.

    Concurrency, paths, keys and code are left out: they change nothing that a model reads. Each
    part carries its length, so that no two different requests meet.
    """
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
    last = parts.pop()
    # All but the last content is the same for a whole count; long histories are not worth keeping.
    begun = _begun_before if sum(map(len, parts)) <= _KEPT_CHARACTERS else _begun
    digest = begun(info, *parts).copy()
    digest.update(_framed(last))
    return ContentKey(digest.hexdigest())


def _turn(message: Message) -> str:
    """Return what a turn says besides its text; written out, since classes may get more fields."""
    calls = [(call.id, call.name, call.arguments) for call in message.calls]
    blocks = message.blocks
    beside = None if blocks is None else (blocks.provider, blocks.model, blocks.data)
    return repr((calls, message.call_id, beside))


def _begun(info: ModelInfo, *parts: str) -> blake2b:
    """Return the digest of a model and of the first parts."""
    digest = _model_digest(info).copy()
    for part in parts:
        digest.update(_framed(part))
    return digest


_begun_before = lru_cache(maxsize=32)(_begun)


def _framed(part: str) -> bytes:
    return f"{len(part)}:{part}".encode("utf-8", "surrogatepass")


# The same few in a whole run. Typed, so that what is equal but written otherwise stays apart.
@lru_cache(maxsize=256, typed=True)
def _parameters(*values: object) -> str:
    return repr(values)


def _model_digest(info: ModelInfo) -> blake2b:
    found = _digests.get(info)
    if found is None:
        text = repr((info.origin, info.provider, info.name, info.identity))
        found = _digests[info] = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    return found
