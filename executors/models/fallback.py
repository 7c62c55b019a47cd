"""Several models as one: where one fails, the next is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from executors.errors import (
    AllFailed,
    ContextExceeded,
    ModelError,
    NotEncodable,
    PromptCut,
    RequestRejected,
    ValidationError,
)
from executors.messages import ModelReply, ModelRequest
from executors.models.base import Model, ModelInfo, StreamingModel, require_model
from executors.models.shown import OnText, Shown

__all__ = ["Fallback", "falls_over"]

_GONE = 404  # a model that a server does not have


def falls_over(error: ModelError) -> bool:
    """Say whether another model may do better: not where the request itself is at fault.

    A refusal is an answer and no error, so that it never falls over.
    """
    match error:
        case ContextExceeded():
            return True
        case NotEncodable() | PromptCut():
            return False
        case RequestRejected(status=status):
            return status == _GONE
        case _:
            return True


class Fallback:
    """Asks models in order until one answers.

    It is filed, and known, as the first of them; a reply says who answered in its place. Each gets
    the same request.

    Args:
        falls: which errors make it ask the next one; any other ends the call.
        on_fallback: called with who failed and why, before the next one is asked.

    Raises:
        ValidationError: no model is given, or what is none; `falls` or `on_fallback` is no function.
    """

    def __init__(
        self,
        *models: Model,
        falls: Callable[[ModelError], bool] = falls_over,
        on_fallback: Callable[[ModelInfo, ModelError], None] | None = None,
    ) -> None:
        if not models:
            raise ValidationError(
                "a fallback needs models", where="rlm.Fallback", hint="give two or more, in order"
            )
        for model in models:
            require_model(model, where="rlm.Fallback")
        for name, given in (("falls", falls), ("on_fallback", on_fallback)):
            if given is not None and not callable(cast("object", given)):
                raise ValidationError(
                    f"{name}={given!r} cannot be called",
                    where="rlm.Fallback",
                    hint="give a function",
                )
        self._models = models
        self._falls = falls
        self._on_fallback = on_fallback
        self._info = _together([model.info for model in models])

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._ask(request, None)

    async def generate_streaming(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Answer one request; what one model said before it failed is not said again by the next."""
        return await self._ask(request, Shown(on_text))

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

    async def _ask(self, request: ModelRequest, shown: Shown | None) -> ModelReply:
        """Return the first answer.

        Raises:
            AllFailed: several were asked, and none answered.
            ModelError: the first one's, where no other was asked.
        """
        errors: list[ModelError] = []
        for model in self._models:
            if errors and self._on_fallback is not None:
                self._on_fallback(self._models[len(errors) - 1].info, errors[-1])
            try:
                reply = await _asked(model, request, shown)
            except ModelError as error:
                errors.append(error)
                if not self._falls(error):
                    break
            else:
                return _answered(reply, model.info, errors) if errors else reply
        if len(errors) == 1:
            raise errors[0]
        raise AllFailed(errors) from errors[-1]


async def _asked(model: Model, request: ModelRequest, shown: Shown | None) -> ModelReply:
    if shown is None or not isinstance(model, StreamingModel):
        return await model.generate(request)
    shown.begin()
    return await model.generate_streaming(request, shown.piece)


def _answered(reply: ModelReply, info: ModelInfo, errors: list[ModelError]) -> ModelReply:
    return replace(
        reply,
        answered_by=reply.answered_by or info.title,
        requests=reply.requests + sum(error.attempts for error in errors),
        unsettled=reply.unsettled + sum(error.maybe_paid for error in errors),
    )


def _together(infos: list[ModelInfo]) -> ModelInfo:
    """Return what holds for all of them, under the name of the first."""
    first, *rest = infos
    caps = [info.max_concurrency for info in infos if info.max_concurrency is not None]
    return replace(
        first,
        context_window=_longest([info.context_window for info in infos]),
        structured_output=all(info.structured_output for info in infos),
        logprobs=all(info.logprobs for info in infos),
        max_concurrency=min(caps, default=None),
        others=(
            *first.others,
            *[one for info in rest for one in (replace(info, others=()), *info.others)],
        ),
    )


def _longest(windows: list[int | None]) -> int | None:
    """Return the longest window; None where one is unknown, since it may be longer still."""
    known = [window for window in windows if window is not None]
    return max(known) if len(known) == len(windows) else None
