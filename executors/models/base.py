"""The Model protocol: what every provider, local engine and fake looks like from above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from executors.errors import ValidationError
from executors.messages import ModelReply, ModelRequest

__all__ = ["Model", "ModelInfo", "StreamingModel", "require_model"]

# Written out, since what reads URLs is heavy and this is imported everywhere.
_VENDORS: Final = "https://api.openai.com:443"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a model is, as far as that decides answers, prices and limits."""

    provider: str
    """ "openai", "local", "scripted", … """
    name: str
    origin: str
    """scheme://host:port of the server, or "in-process"."""
    identity: str = ""
    """What else decides an answer: for a local model weights hash, back end and version."""
    key_fingerprint: str = ""
    """Tells accounts apart without showing a key; "" where no key is sent."""
    context_window: int | None = None
    """Tokens of prompt plus output; None when unknown."""
    structured_output: bool = False
    logprobs: bool = False
    max_concurrency: int | None = None
    """Calls that the model can serve at once; None when the caller decides."""
    others: tuple[ModelInfo, ...] = ()
    """Models that may answer in its place, and then cost what they cost."""

    @property
    def spec(self) -> str:
        """The name people see: provider and model."""
        return f"{self.provider}:{self.name}"

    @property
    def title(self) -> str:
        """The name people see, and the server where it says more."""
        return f"{self.spec} at {self.server}" if self.server else self.spec

    @property
    def server(self) -> str:
        """The server that is asked; "" where it is the vendor's own, or this process."""
        return "" if self.origin == _VENDORS or "://" not in self.origin else self.origin


@runtime_checkable
class Model(Protocol):
    """Something that answers requests. Implementations never retry: `executors.endpoint.endpoint` does."""

    @property
    def info(self) -> ModelInfo:
        """Constant for the life of the object."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelError: a subclass that says whether a retry makes sense.
        """
        ...

    async def aclose(self) -> None:
        """Let go of sockets, threads and weights; the object may be used again afterwards."""
        ...


@runtime_checkable
class StreamingModel(Model, Protocol):
    """A model that can be watched while it answers."""

    async def generate_streaming(
        self, request: ModelRequest, on_text: Callable[[str], None]
    ) -> ModelReply:
        """Answer one request, and call `on_text` with each piece of the text as it comes.

        The pieces may end before the text does; what thinks or refuses is not among them.

        Raises:
            ModelError: as `generate`.
        """
        ...


def require_model(value: object, *, where: str, name: str = "model") -> None:
    """See to it that a value is a model.

    Raises:
        ValidationError: it is none; a name of a model is none either.
    """
    if not isinstance(value, Model):
        raise ValidationError(
            f"{name}={value!r} is no model"[:200],
            where=where,
            hint="give an object that answers, such as OpenAIModel(…), and not its name",
        )
