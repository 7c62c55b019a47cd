"""Fields of actions whose value alone decides."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, RootModel, model_validator

from executors.gate.config.texts import refuse_models

__all__ = ["FlagsSection", "flag_text"]


def flag_text(value: object) -> object:
    """Return a value as the configuration spells it: `true` and numbers as their text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


class FlagsSection(
    RootModel[dict[str, dict[Annotated[str, BeforeValidator(flag_text)], Literal["deny", "ask"]]]]
):
    """By the name of a field, and by its value: whether to deny, or to ask a person.

    The field is compared as it is; texts around it never matter, and a list or a mapping in it
    matches nothing.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode="after")
    def _of_actions(self) -> Self:
        for field in ("type", "tool"):
            refuse_models(self.root.get(field, {}))
        return self
