"""A model that never sees personal data: it is masked in whatever is sent."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import cast

from executors.messages import Message, ModelReply, ModelRequest, ToolCall
from executors.models.base import Model, ModelInfo, StreamingModel, require_model
from executors.models.masking import Masking, PersonalKind
from executors.models.shown import OnText

__all__ = ["Masked", "masked"]


def masked(model: Model, kinds: Collection[PersonalKind], *, region: str | None = None) -> Model:
    """Return a model before which some kinds of personal data are masked; itself where there are none.

    Its answers are filed apart from those of the model itself: what was masked decides an answer.

    Args:
        region: two letters of the country whose telephone numbers may stand without "+".

    Raises:
        MissingExtra: the extra `mask` is not installed.
        ValidationError: a kind or a region that is none, or no model.
    """
    require_model(model, where="masked")
    if not kinds:
        return model
    return Masked(model, Masking(kinds, region=region))


class Masked:
    """A model behind a mask: the texts of every turn are masked before they leave, and no answer is."""

    def __init__(self, model: Model, masking: Masking) -> None:
        self._model = model
        self._masking = masking
        of = f" of {masking.region}" if masking.region else ""
        hides = f"masks {', '.join(masking.kinds)}{of}"
        identity = model.info.identity
        self._info = replace(model.info, identity=f"{identity}; {hides}" if identity else hides)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def kinds(self) -> tuple[PersonalKind, ...]:
        """What is masked."""
        return self._masking.kinds

    def hides(self, kinds: Collection[PersonalKind], *, region: str | None) -> bool:
        """Whether all of these are masked already, telephone numbers by the rules of that region."""
        same = region == self._masking.region or "phone" not in kinds
        return same and set(kinds) <= set(self.kinds)

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._model.generate(self.hidden(request))

    async def generate_streaming(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        model, hidden = self._model, self.hidden(request)
        if isinstance(model, StreamingModel):
            return await model.generate_streaming(hidden, on_text)
        return await model.generate(hidden)

    async def aclose(self) -> None:
        await self._model.aclose()

    def hidden(self, request: ModelRequest) -> ModelRequest:
        """Return a request as it is sent."""
        return replace(request, messages=tuple(map(self._turn, request.messages)))

    def _turn(self, message: Message) -> Message:
        content = self._masking(message.content)
        calls = tuple(map(self._call, message.calls))
        if content == message.content and calls == message.calls:
            return message
        return replace(message, content=content, calls=calls)

    def _call(self, call: ToolCall) -> ToolCall:
        try:
            value: object = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return replace(call, arguments=json.dumps(self._masking(call.arguments)))
        hidden = self._within(value)
        if hidden == value:
            return call
        return replace(call, arguments=json.dumps(hidden, ensure_ascii=False))

    def _within(self, value: object) -> object:
        """Return JSON with each text masked; a number that is personal becomes a text."""
        match value:
            case dict():
                fields = cast("dict[str, object]", value)
                return {self._masking(name): self._within(one) for name, one in fields.items()}
            case list():
                return [self._within(one) for one in cast("list[object]", value)]
            case str():
                return self._masking(value)
            case int() if not isinstance(value, bool):
                text = str(value)
                return value if self._masking(text) == text else self._masking(text)
            case _:
                return value
