"""A model on this machine: llama.cpp in a child process without network.

Same prompt, same back end, same build: the same log-probabilities, bit for bit, whatever was asked
in between. Instructions belong into an earlier message than the text they are about: the last
message's content is what is evaluated anew, all before it is taken over from the call before.
A last message of role "assistant" is gone on with, which is how an answer is scored past its first
token. Tools are taught in words, and what calls for them is held to their schemas.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
from anyio import to_thread

from executors.errors import (
    ContextExceeded,
    DeadlineExceeded,
    ModelError,
    NotEncodable,
    RequestRejected,
    ServerFault,
    ValidationError,
)
from executors.messages import ModelReply, ModelRequest, StopReason, TokenLogprob
from executors.models.base import ModelInfo
from executors.models.local.backends import (
    BackendName,
    EngineRefusal,
    EngineSetup,
    backend_version,
    choose_backend,
)
from executors.models.local.weights import Weights, load_weights
from executors.models.local.worker import LlamaWorker, Ticket, Worker, WorkerDied
from executors.models.taught import has_tools, taught, understood
from executors.usage import Usage

__all__ = ["LocalModel", "LocalOptions"]

# Part of every call key: counted up when prompts are cut or evaluated in another way.
_READOUT: Final = "readout-1"
_STOPS: Final[dict[str, StopReason]] = {"stop": "end", "length": "max_tokens"}

Fields = Mapping[str, Any]
StartWorker = Callable[[EngineSetup], Worker]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """How a local model runs. Only `backend` takes part in what it answers."""

    backend: BackendName | None = None
    """None takes the first that is installed."""
    window: int = 4096
    """Tokens of prompt plus output; never more than the weights were trained for."""
    workers: int = 1
    """Child processes, each with a context of its own over the same mapped weights."""
    threads: int = 1
    """Threads of a worker. On a busy machine two were measured slower than one."""
    deadline: float = 600.0
    """Seconds that one call may take, loading included."""

    def __post_init__(self) -> None:
        for name in ("window", "workers", "threads", "deadline"):
            value = getattr(self, name)
            if not value > 0:
                raise ValidationError(
                    f"{name} is {value!r}", where="local model", hint="give a positive number"
                )


class LocalModel:
    """Weights behind llama.cpp.

    The first call loads them. A cancelled call ends its worker at once, in the middle of a token;
    the next call starts another one (about half a second for the packaged weights).

    Args:
        path: a GGUF file; None takes RLM_GGUF, then the package with the weights.
        environ: where variables are read; None reads the process's own.
        start: makes a worker; None runs one in a child process.

    Raises:
        ConfigError: no weights, or none that can be used.
        MissingExtra: no back end is installed.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        options: LocalOptions | None = None,
        weights: Weights | None = None,
        environ: Mapping[str, str] | None = None,
        start: StartWorker | None = None,
    ) -> None:
        self._options = options or LocalOptions()
        backend = choose_backend(self._options.backend)
        weights = weights or load_weights(path, environ=environ)
        self._setup = _setup(self._options, backend, weights)
        self._info = _info(self._options, self._setup, weights)
        self._workers = [(start or LlamaWorker)(self._setup) for _ in range(self._options.workers)]
        self._idle = list(self._workers)
        self._slots = anyio.Semaphore(self._options.workers)

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request; a second one waits while all workers are busy.

        Raises:
            ContextExceeded: prompt plus `max_tokens` is longer than the window; nothing ran.
            NotEncodable: a message holds half a character.
            RequestRejected: a schema or a sequence of roles that the weights cannot serve.
            ValidationError: two tools share a name, or the choice of one is none.
            DeadlineExceeded: the deadline passed.
            ServerFault: the worker died; another try starts a new one.
        """
        if has_tools(request):
            reply = await self._complete(taught(request))
            return understood(reply, request)
        return await self._complete(request)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._ask(_question(request))
        scores = None if request.top_logprobs is None else _scores(reply["scores"])
        return ModelReply(
            text=reply["text"],
            stop=_STOPS[reply["finish"]],
            stop_raw=reply["finish"],
            usage=Usage(
                input=reply["prompt"] - reply["cached"],
                cache_read=reply["cached"],
                cache_write=0,
                output=reply["output"],
            ),
            model=self._info.name,
            token_logprobs=scores,
            temperature=request.temperature or 0.0,
        )

    async def count_tokens(self, text: str) -> int:
        """Return how many tokens the weights need for a text, control tokens unread."""
        _require_utf8(text)
        reply = await self._ask({"op": "tokenize", "text": text})
        return len(reply["tokens"])

    async def aclose(self) -> None:
        """End the workers and free their memory; the next call starts them again."""
        with anyio.CancelScope(shield=True):  # bounded: a worker that does not end is killed
            for worker in self._workers:
                await to_thread.run_sync(worker.close)

    async def _ask(self, question: Fields) -> Fields:
        async with self._worker() as worker:
            ticket = Ticket()
            try:
                with anyio.fail_after(self._options.deadline):
                    return await to_thread.run_sync(
                        worker.ask, question, ticket, abandon_on_cancel=True
                    )
            except (EngineRefusal, WorkerDied) as error:
                raise self._model_error(error) from error
            except TimeoutError as error:
                raise self._too_late() from error
            finally:
                worker.kill(ticket)  # does nothing once the answer is there

    @asynccontextmanager
    async def _worker(self) -> AsyncGenerator[Worker]:
        async with self._slots:
            # The one used last: its instructions are evaluated already.
            worker = self._idle.pop()
            try:
                yield worker
            finally:
                self._idle.append(worker)

    def _model_error(self, error: EngineRefusal | WorkerDied) -> ModelError:
        where = f"model {self._info.spec}, {self._setup.backend}"
        if isinstance(error, WorkerDied):
            return ServerFault(f"llama.cpp died: {error}", where=where)
        match error.kind:
            case "context":
                hint = "use fewer items a window (--window) or weights with a longer one"
                return ContextExceeded(error.what, where=where, hint=hint)
            case "rejected":
                return RequestRejected(error.what, where=where)
            case "fault":
                return ServerFault(error.what, where=where)

    def _too_late(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"no answer within {self._options.deadline:g} seconds",
            where=f"model {self._info.spec}, {self._setup.backend}",
            hint="ask for fewer tokens, or give LocalOptions a longer deadline",
        )


def _setup(options: LocalOptions, backend: BackendName, weights: Weights) -> EngineSetup:
    trained = weights.header.trained_window
    return EngineSetup(
        backend=backend,
        path=os.fspath(weights.path.resolve()),
        window=options.window if trained is None else min(options.window, trained),
        threads=options.threads,
        chat_template=weights.header.chat_template,
    )


def _info(options: LocalOptions, setup: EngineSetup, weights: Weights) -> ModelInfo:
    engine = f"{setup.backend} {backend_version(setup.backend)}"
    return ModelInfo(
        provider="local",
        name=weights.name,
        origin="in-process",
        identity=f"sha256:{weights.sha256} {engine} {_READOUT}",
        context_window=setup.window,
        structured_output=True,
        logprobs=True,
        max_concurrency=options.workers,
    )


def _question(request: ModelRequest) -> dict[str, object]:
    for message in request.messages:
        _require_utf8(message.content)
    schema = request.schema
    return {
        "op": "complete",
        "turns": [(message.role, message.content) for message in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature or 0.0,
        "seed": request.seed or 0,
        "schema": None if schema is None else json.dumps(dict(schema.schema)),
        "top": request.top_logprobs,
        "stop": request.stop,
    }


def _require_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NotEncodable(
            f"the text cannot be written as UTF-8: {text[error.start : error.end]!r}",
            where=f"character {error.start:,} of a message",
            hint="the record holds half of a surrogate pair; clean it, or read it with another encoding",
        ) from error


def _scores(entries: list[Fields]) -> tuple[TokenLogprob, ...]:
    return tuple(
        TokenLogprob(
            token=entry["token"],
            logprob=entry["logprob"],
            top=tuple((token, logprob) for token, logprob in entry["top"]),
        )
        for entry in entries
    )
