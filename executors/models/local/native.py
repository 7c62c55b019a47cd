"""The engine over `llama-cpp-python`: llama.cpp's own C interface by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from executors.models.local.backends import (
    BATCH,
    Completion,
    EngineRefusal,
    EngineSetup,
    Held,
    Job,
    TokenScore,
    Turn,
)

__all__ = ["NativeEngine"]

_PIECE_BYTES = 256


class NativeEngine:
    """Weights, and one context of one sequence. Not for two threads at once.

    Raises:
        EngineRefusal: the weights cannot be loaded.
    """

    def __init__(self, setup: EngineSetup) -> None:
        # Loads native code: only the child process comes here.
        self._lib: Any = import_module("llama_cpp")
        self._silence()
        self._setup = setup
        self._model = self._load(setup)
        self._context = self._open(setup)
        self._vocab: object = self._lib.llama_model_get_vocab(self._model)
        self._vocab_size = int(self._lib.llama_vocab_n_tokens(self._vocab))
        self._memory: object = self._lib.llama_get_memory(self._context)
        self._held = Held()

    def _silence(self) -> None:
        # Kept on the object: ctypes frees a callback that nobody holds.
        self._on_log: object = self._lib.llama_log_callback(_ignore)
        self._lib.llama_log_set(self._on_log, ctypes.c_void_p(0))

    def _load(self, setup: EngineSetup) -> object:
        params = self._lib.llama_model_default_params()
        params.n_gpu_layers = 0
        # Builds for the machine at hand may use its matrix tiles (AMX), which virtual machines
        # often show and do not grant: the process would die. Tiles live in these extra buffers.
        params.use_extra_bufts = False
        model: object = self._lib.llama_model_load_from_file(setup.path.encode(), params)
        if not model:
            raise EngineRefusal("rejected", "llama.cpp cannot load these weights")
        return model

    def _open(self, setup: EngineSetup) -> object:
        params = self._lib.llama_context_default_params()
        params.n_ctx = setup.window
        params.n_batch = params.n_ubatch = BATCH
        params.n_threads = params.n_threads_batch = setup.threads
        params.flash_attn_type = self._lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.swa_full = True
        params.offload_kqv = False
        context: object = self._lib.llama_init_from_model(self._model, params)
        if not context:
            raise EngineRefusal("rejected", f"llama.cpp cannot hold a window of {setup.window:,}")
        return context

    def tokenize(self, text: str, *, special: bool, bos: bool) -> tuple[int, ...]:
        raw = text.encode()
        room = len(raw) + 8  # a token is a byte or more; begin and end tokens come on top
        tokens = (ctypes.c_int32 * room)()
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), tokens, room, bos, special)
        if count < 0:
            raise EngineRefusal("rejected", "llama.cpp cannot tokenize this text")
        return tuple(tokens[:count])

    def render(self, turns: Sequence[Turn]) -> str:
        template = self._setup.chat_template
        assert template is not None, "only asked of weights that hold a template"
        formatter = import_module("llama_cpp.llama_chat_format").Jinja2ChatFormatter(
            template,
            eos_token=self._spelling(self._lib.llama_vocab_eos(self._vocab)),
            bos_token=self._spelling(self._lib.llama_vocab_bos(self._vocab)),
        )
        messages = [{"role": role, "content": content} for role, content in turns]
        try:
            return str(formatter(messages=messages).prompt)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            # What a template of the user's weights raises, or Jinja on its behalf.
            raise EngineRefusal("rejected", f"the chat template refuses: {error}") from error

    def complete(self, job: Job) -> Completion:
        cached = self._prefill(job.segments)
        prompt = sum(map(len, job.segments))
        scores: list[TokenScore] = []
        written = b""
        finish: Literal["stop", "length"] = "length"
        count = 0
        with self._sampler(job) as sampler:
            for count in range(1, job.max_tokens + 1):
                logprobs = None if job.top is None else self._logprobs()
                token = int(self._lib.llama_sampler_sample(sampler, self._context, -1))
                if logprobs is not None:
                    scores.append(self._score(logprobs, token, job.top or 0))
                if self._lib.llama_vocab_is_eog(self._vocab, token):
                    finish = "stop"
                    break
                written += self._piece(token, special=False)
                if any(stop.encode() in written for stop in job.stop):
                    finish = "stop"
                    break
                if count < job.max_tokens:
                    self._decode((token,))
        return Completion(
            text=_cut(written.decode("utf-8", "ignore"), job.stop),
            finish=finish,
            prompt=prompt,
            cached=cached,
            output=count,
            scores=tuple(scores),
        )

    # -------------------------------------------------------------- prompt

    def _prefill(self, segments: tuple[tuple[int, ...], ...]) -> int:
        """Bring the context to the end of the prompt; return the tokens that were taken over."""
        kept = self._held.keep_common(segments)
        cached = self._held.tokens
        if not self._lib.llama_memory_seq_rm(self._memory, 0, cached, -1):
            # A recurrent model cannot go back part of the way.
            kept = cached = 0
            self._held.segments.clear()
        if cached == 0:
            self._lib.llama_memory_clear(self._memory, True)
        for segment in segments[kept:]:
            for start in range(0, len(segment), BATCH):
                self._decode(segment[start : start + BATCH])
            self._held.segments.append(segment)
        return cached

    def _decode(self, tokens: Sequence[int]) -> None:
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        batch = self._lib.llama_batch_get_one(array, len(tokens))
        status = self._lib.llama_decode(self._context, batch)
        if status != 0:
            self._held.segments.clear()
            self._lib.llama_memory_clear(self._memory, True)
            raise EngineRefusal("fault", f"llama_decode failed with status {status}")

    # -------------------------------------------------------------- output

    @contextmanager
    def _sampler(self, job: Job) -> Generator[object]:
        lib = self._lib
        chain: object = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        try:
            if job.schema is not None:
                lib.llama_sampler_chain_add(chain, self._grammar(job.schema))
            if job.temperature > 0:
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(job.temperature))
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_dist(job.seed))
            else:
                lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
            yield chain
        finally:
            lib.llama_sampler_free(chain)

    def _grammar(self, schema: str) -> object:
        try:
            text: str = import_module("llama_cpp.llama_grammar").json_schema_to_gbnf(schema)
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            raise EngineRefusal("rejected", f"the JSON Schema is not supported: {error}") from error
        grammar: object = self._lib.llama_sampler_init_grammar(self._vocab, text.encode(), b"root")
        if not grammar:
            raise EngineRefusal("rejected", "llama.cpp refuses the grammar of the JSON Schema")
        return grammar

    def _logprobs(self) -> npt.NDArray[np.float64]:
        pointer = self._lib.llama_get_logits_ith(self._context, -1)
        logits = np.ctypeslib.as_array(pointer, shape=(self._vocab_size,)).astype(np.float64)
        logits -= logits.max()
        logits -= np.log(np.exp(logits).sum())
        return logits

    def _score(self, logprobs: npt.NDArray[np.float64], token: int, top: int) -> TokenScore:
        # A stable sort: equal probabilities stand in the order of their token ids.
        best = np.argsort(-logprobs, kind="stable")[:top]
        return TokenScore(
            token=self._spelling(token),
            logprob=float(logprobs[token]),
            top=tuple((self._spelling(int(id_)), float(logprobs[id_])) for id_ in best),
        )

    def _spelling(self, token: int) -> str:
        return "" if token < 0 else self._piece(token, special=True).decode("utf-8", "replace")

    def _piece(self, token: int, *, special: bool) -> bytes:
        room = _PIECE_BYTES
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = int(self._lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, special))
            if size >= 0:
                return buffer.raw[:size]
            room = -size


def _ignore(level: int, text: bytes, data: object) -> None:
    """Log nothing: standard error is kept for what goes wrong."""


def _cut(text: str, stops: Sequence[str]) -> str:
    """Return the text up to the first stop string."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text
