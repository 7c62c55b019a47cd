"""The two back ends of llama.cpp behind one small Protocol, and the values that pass through it.

`xllamacpp` is a wheel, `llama-cpp-python` is compiled where it is installed. Nothing here loads
either; their engines live in `server` and `native`, and run in a child process.

Read-outs reproduce bit for bit because a prompt is always evaluated in the same pieces: a prompt
is a list of segments, each segment is one batch over what stands before it, and only whole
segments are ever taken over from the call before. The numbers depend on batch shapes: a last token
that is evaluated alone differs from the same token inside a batch by up to 0.3 in a log-probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final, Literal, Protocol

from executors.errors import ConfigError, MissingExtra

__all__ = [
    "BACKENDS",
    "BATCH",
    "SOCKET",
    "BackendName",
    "Completion",
    "Engine",
    "EngineRefusal",
    "EngineSetup",
    "Held",
    "Job",
    "Refusal",
    "TokenScore",
    "Turn",
    "backend_version",
    "choose_backend",
]

BackendName = Literal["xllamacpp", "llama-cpp-python"]
BATCH: Final = 512
"""Tokens of one batch; part of what decides the last bits of a read-out."""
SOCKET: Final = "llama.sock"
"""Where a back end that insists on listening does so, in the child's own folder. The ending is what
makes it a local socket."""

_MODULES: Final[dict[BackendName, str]] = {
    "xllamacpp": "xllamacpp",
    "llama-cpp-python": "llama_cpp",
}
_EXTRAS: Final[dict[BackendName, str]] = {"xllamacpp": "local", "llama-cpp-python": "llama"}
BACKENDS: Final[tuple[BackendName, ...]] = tuple(_MODULES)
"""In order of preference."""

Refusal = Literal["context", "rejected", "fault"]
Turn = tuple[str, str]
"""Role and content of a message."""


class EngineRefusal(Exception):
    """A back end did not do what was asked; `kind` says what a caller may do about it."""

    def __init__(self, kind: Refusal, what: str) -> None:
        super().__init__(what)
        self.kind: Refusal = kind
        self.what = what


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetup:
    """What an engine is started with."""

    backend: BackendName
    path: str
    window: int
    """Tokens of prompt plus output."""
    threads: int
    chat_template: str | None
    """Jinja source from the weights; None for a base model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One completion: token segments, and how to go on after them."""

    segments: tuple[tuple[int, ...], ...]
    """None of them empty."""
    max_tokens: int
    temperature: float
    """Zero takes the likeliest token."""
    seed: int
    schema: str | None
    """A JSON Schema as JSON; its properties are written in the order in which they stand."""
    top: int | None
    """Alternatives to report for each output token; None reports no log-probabilities."""
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScore:
    """One output token, its natural-log probability before any grammar, and the alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What an engine made of a job."""

    text: str
    finish: Literal["stop", "length"]
    prompt: int
    cached: int
    """Tokens of the prompt that were taken over from an earlier call."""
    output: int
    scores: tuple[TokenScore, ...]


class Engine(Protocol):
    """Weights in memory, for as long as the process lives. One call at a time."""

    def tokenize(self, text: str, *, special: bool, bos: bool) -> tuple[int, ...]:
        """Return token ids; `special` reads the spelling of a control token as that token."""
        ...

    def render(self, turns: Sequence[Turn]) -> str:
        """Return the turns in the model's own chat format, ready for an answer."""
        ...

    def complete(self, job: Job) -> Completion:
        """Run a job whose segments and output fit the window.

        Raises:
            EngineRefusal: the back end refused, or failed.
        """
        ...


class Held:
    """The segments whose state the engine still holds, in the shape in which each was evaluated."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, ...]] = []

    def keep_common(self, wanted: Sequence[tuple[int, ...]]) -> int:
        """Forget what `wanted` does not share, and return how many of its segments are left.

        The last wanted one is never shared: its evaluation is what gives the answer.
        """
        common = 0
        for held, segment in zip(self.segments, wanted[:-1], strict=False):
            if held != segment:
                break
            common += 1
        del self.segments[common:]
        return common

    @property
    def tokens(self) -> int:
        """Number of tokens held."""
        return sum(map(len, self.segments))


def choose_backend(wanted: BackendName | None = None) -> BackendName:
    """Return the back end to use: the wanted one, or the first that is installed.

    Raises:
        MissingExtra: it is not installed, or none is.
        ConfigError: there is no such back end.
    """
    if wanted is not None and wanted not in _MODULES:
        raise ConfigError(
            f"unknown back end {wanted!r} for local models",
            hint="choose one of: " + ", ".join(BACKENDS),
        )
    for name in (wanted,) if wanted else BACKENDS:
        if find_spec(_MODULES[name]) is not None:
            return name
    raise MissingExtra(extra=_EXTRAS[wanted or "xllamacpp"], needed_for="a local model")


def backend_version(name: BackendName) -> str:
    """Return the installed version of a back end."""
    return version(name)
