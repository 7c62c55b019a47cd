"""The engine over `xllamacpp`: llama.cpp's server as an object, with its socket kept private.

The object insists on listening. It gets a Unix socket in the working directory, which the child
process has for itself, and a random key; we use it for tokens and chat templates, which the object
itself does not offer.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from typing import Any, Final, Literal, cast

from executors.models.local.backends import (
    BATCH,
    SOCKET,
    Completion,
    EngineRefusal,
    EngineSetup,
    Held,
    Job,
    Refusal,
    TokenScore,
    Turn,
)

__all__ = ["ServerEngine"]

_SECONDS: Final = 60.0
_NO_JSON: Final = "]"
_PRESSED: Final = 1000.0
Fields = Mapping[str, Any]


class ServerEngine:
    """Weights behind a server object with one slot. Not for two threads at once.

    Raises:
        EngineRefusal: the weights cannot be loaded.
    """

    def __init__(self, setup: EngineSetup) -> None:
        self._key = secrets.token_hex(16)
        self._server: Any = self._start(setup)
        self._held = Held()
        self._tail: int | None = None
        """First token in the slot after the held segments; None when it is not known."""
        self._served: set[str] = set()
        """Schemas that were seen to hold an answer."""
        self._splits = True
        """False once the model turned out to have a state that cannot be cut back."""

    def _start(self, setup: EngineSetup) -> object:
        # Loads native code: only the child process comes here.
        lib: Any = import_module("xllamacpp")
        params = lib.CommonParams()
        params.model.path = setup.path
        params.n_ctx = setup.window
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = BATCH
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = setup.threads
        params.flash_attn_type = lib.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.swa_full = True  # a sliding-window model could not take over a prefix otherwise
        params.fit_params = params.warmup = params.ui = params.endpoint_slots = False
        # States set aside and brought back would depend on what was asked before.
        params.cache_ram_mib = params.n_ctx_checkpoints = 0
        params.cache_idle_slots = False
        params.offline = True
        params.verbosity = -1
        params.hostnames = [SOCKET]
        params.api_keys = [self._key]
        params.n_threads_http = 1
        try:
            server: object = lib.Server(params)
            return server
        except RuntimeError as error:
            raise EngineRefusal("rejected", "llama.cpp cannot load these weights") from error

    def tokenize(self, text: str, *, special: bool, bos: bool) -> tuple[int, ...]:
        reply = self._post(
            "/tokenize", {"content": text, "add_special": bos, "parse_special": special}
        )
        return tuple(reply["tokens"])

    def render(self, turns: Sequence[Turn]) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        return str(self._post("/apply-template", {"messages": messages})["prompt"])

    def complete(self, job: Job) -> Completion:
        if job.schema is not None:
            self._require_served(job.schema)
        if not self._splits:
            return self._ask_whole(job)
        kept = self._keep_common(job.segments)
        cached = self._held.tokens
        for segment in job.segments[kept:-1]:
            self._extend(segment)
        expected = self._held.tokens
        self._free_tail(job.segments[-1][0])
        reply = self._ask(job, reuse=expected > 0)
        if reply.cached != expected:
            self._splits = False
            return self._ask_whole(job)
        self._hold(job.segments[-1])
        return replace(reply, cached=cached)

    # -------------------------------------------------------------- prompt

    def _keep_common(self, wanted: tuple[tuple[int, ...], ...]) -> int:
        before = list(self._held.segments)
        kept = self._held.keep_common(wanted)
        if kept < len(before):
            self._tail = before[kept][0]
        return kept

    def _extend(self, segment: tuple[int, ...]) -> None:
        """Evaluate one more segment as a batch of its own and hold it."""
        self._free_tail(segment[0])
        self._touch(segment, reuse=bool(self._held.segments))
        self._hold(segment)

    def _hold(self, segment: tuple[int, ...]) -> None:
        self._held.segments.append(segment)
        self._tail = None  # a generated token may follow

    def _free_tail(self, coming: int) -> None:
        """Make sure that nothing after the held segments looks like what comes next.

        The server takes over every leading token that its slot shares with a prompt. A shared
        token past the held segments would cut the next batch short, and shift its last bits.
        """
        if self._held.segments and self._tail in (None, coming):
            self._tail = 1 if coming == 0 else 0
            self._touch((self._tail,), reuse=True)

    def _touch(self, segment: tuple[int, ...], *, reuse: bool) -> None:
        self._ask(
            Job(
                segments=(*self._held.segments, segment),
                max_tokens=1, temperature=0.0, seed=0, schema=None, top=None, stop=(),
            ),
            reuse=reuse,
        )  # fmt: skip

    def _ask_whole(self, job: Job) -> Completion:
        self._held.segments.clear()
        return self._ask(job, reuse=False)

    def _ask(self, job: Job, *, reuse: bool) -> Completion:
        reply: Fields = self._server.handle_completions(_payload(job, reuse=reuse))
        _raise_refusal(reply)
        choice: Fields = reply["choices"][0]
        logprobs: Fields | None = choice.get("logprobs")
        listed: Sequence[Fields] = logprobs["content"] if logprobs else ()
        finish: Literal["stop", "length"] = (
            "length" if choice["finish_reason"] == "length" else "stop"
        )
        return Completion(
            text=str(choice["text"]),
            finish=finish,
            prompt=int(reply["usage"]["prompt_tokens"]),
            cached=int(reply["timings"]["cache_n"]),
            output=int(reply["usage"]["completion_tokens"]),
            scores=tuple(_score(entry, job.top or 0) for entry in listed),
        )

    def _require_served(self, schema: str) -> None:
        """Refuse a schema that the server drops without a word, as it does with faulty ones.

        No JSON begins with a closing bracket: one that comes when it is pressed for was not held.
        """
        if schema in self._served:
            return
        (bracket, *_) = self.tokenize(_NO_JSON, special=False, bos=False)
        self._held.segments.clear()
        job = Job(
            segments=((bracket,),), max_tokens=1, temperature=0.0, seed=0, schema=schema, top=None,
            stop=(),
        )  # fmt: skip
        payload = {**_payload(job, reuse=False), "logit_bias": [[bracket, _PRESSED]]}
        reply: Fields = self._server.handle_completions(payload)
        _raise_refusal(reply)
        if _NO_JSON in reply["choices"][0]["text"]:
            raise EngineRefusal("rejected", "llama.cpp cannot hold an answer to this JSON Schema")
        self._served.add(schema)

    # -------------------------------------------------------------- the private socket

    def _post(self, path: str, body: Fields) -> Fields:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            with closing(_LocalConnection()) as connection:
                connection.request("POST", path, json.dumps(body), headers)
                reply = cast(Fields, json.loads(connection.getresponse().read()))
        except (OSError, HTTPException, ValueError) as error:
            raise EngineRefusal("fault", f"llama.cpp does not answer {path}: {error}") from error
        _raise_refusal(reply)
        return reply


class _LocalConnection(HTTPConnection):
    def __init__(self) -> None:
        super().__init__("localhost", timeout=_SECONDS)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


def _payload(job: Job, *, reuse: bool) -> dict[str, object]:
    payload: dict[str, object] = {
        "prompt": [token for segment in job.segments for token in segment],
        "max_tokens": job.max_tokens,
        "temperature": job.temperature,
        "samplers": ["temperature"],  # nothing else may narrow the choice
        "seed": job.seed,
        "cache_prompt": reuse,
    }
    if job.top is not None:
        payload["logprobs"] = max(1, job.top)
    if job.schema is not None:
        payload["json_schema"] = json.loads(job.schema)
    if job.stop:
        payload["stop"] = list(job.stop)
    return payload


def _raise_refusal(reply: Fields) -> None:
    error: Fields | None = reply.get("error")
    if error is None:
        return
    kind: Refusal = "fault"
    if error.get("type") == "exceed_context_size_error":
        kind = "context"
    elif error.get("code") == 400:
        kind = "rejected"
    raise EngineRefusal(kind, str(error.get("message")))


def _score(entry: Fields, top: int) -> TokenScore:
    alternatives: Sequence[Fields] = entry["top_logprobs"]
    return TokenScore(
        token=_spelling(entry),
        logprob=float(entry["logprob"]),
        top=tuple((_spelling(other), float(other["logprob"])) for other in alternatives[:top]),
    )


def _spelling(entry: Fields) -> str:
    # `token` is empty for half a character; the bytes are there.
    return bytes(entry["bytes"]).decode("utf-8", "replace")
