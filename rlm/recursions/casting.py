"""Who plays which role: the models of a run, found and checked before anything is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import anyio

from executors.errors import ConfigError, MissingExtra
from executors.models.base import Model
from executors.models.registry import is_encoder, resolve_model
from rlm.recursions.forest import Models
from rlm.recursions.wiring import ROLES, Wiring

__all__ = ["Cast", "cast_models"]

_GRACE: Final = 5  # seconds that a model gets to let go of its sockets
_SMALL: Final = "local"
"""The provider whose models are too small to plan, to judge or to grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The models of a run, with what people should know of the choice."""

    models: Models
    owned: tuple[Model, ...]
    """Those that were made here, and so are closed here."""
    shown: dict[str, str]
    notes: tuple[str, ...]

    async def let_go(self) -> None:
        """Close what was made here; bounded, also when cancelled."""
        with anyio.move_on_after(_GRACE, shield=True):
            for model in self.owned:
                await model.aclose()


def cast_models(wiring: Wiring, *, warn: Callable[[str], None], asks: bool = True) -> Cast:
    """Find the model of each role.

    A small model on this machine works and merges. It does not plan, judge or grade: its plans are
    unusable and its verdicts at chance, so rules and checks in code take these roles, and it is said.

    Args:
        asks: False where none of them is ever asked: a key that is not set is no error then.

    Raises:
        ConfigError: a spec that cannot work.
        MissingExtra: what it needs is not installed.
    """
    made: dict[str, Model] = {}

    def found(given: str | Model) -> Model:
        if not isinstance(given, str):
            return given
        if given not in made:
            if is_encoder(given):
                raise ConfigError(
                    f"{given!r} is an encoder, which writes nothing",
                    hint="name a model, as in 'openai:gpt-x' (--model openai:gpt-x); see: rlm models",
                )
            made[given] = resolve_model(given, key_env=wiring.key_env, warn=warn, asks=asks)
        return made[given]

    try:
        worker = found(wiring.model or _SMALL)
    except (ConfigError, MissingExtra) as error:
        if wiring.model is not None:
            raise
        raise ConfigError(
            "no model is named, and there is none on this machine to work with",
            where=error.what,
            hint="name one with model= (--model openai:gpt-x), or: pip install 'rlm-recurse[local]'",
        ) from error
    able = worker.info.provider != _SMALL

    def role(given: str | Model | None) -> Model | None:
        return found(given) if given is not None else (worker if able else None)

    models = Models(
        worker=worker,
        planner=role(wiring.planner),
        judge=role(wiring.judge),
        verifier=role(wiring.verifier),
        merger=worker if wiring.merger is None else found(wiring.merger),
    )
    given = {name: value for name in ROLES if (value := getattr(wiring, name)) is not None}
    notes = () if able else (_note(models),)
    specs = {name: v if isinstance(v, str) else v.info.spec for name, v in given.items()}
    return Cast(
        models=models,
        owned=tuple(made.values()),
        shown={"model": worker.info.spec, **specs},
        notes=notes,
    )


def _note(models: Models) -> str:
    lacking = [n for n in ("planner", "judge", "verifier") if getattr(models, n) is None]
    if not lacking:
        return f"{models.worker.info.spec} is small; it works, and others plan, judge and grade"
    return (
        f"{models.worker.info.spec} is too small to be {', '.join(lacking)}: rules plan and route, "
        "and checks in code grade"
    )
