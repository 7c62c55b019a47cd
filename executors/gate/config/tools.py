"""Which tools may be called, and with which arguments never."""

from __future__ import annotations

from pydantic import Field, field_validator

from executors.gate.config.section import Section
from executors.gate.config.texts import Texts, refuse_models, require_texts

__all__ = ["ToolsSection"]


class ToolsSection(Section):
    """Names of tools.

    In them `*` stands for any characters, `/` and line breaks too; `?` and `[` are themselves.
    """

    allowlist: Texts | None = None
    """The tools that may be called; None has no opinion, [] permits none. A rule that asks about an
    action asks about what is listed here as well."""
    denylist: Texts = ()
    """The tools that may not, whatever the other list says."""
    deny_arg_patterns: dict[str, Texts] = Field(default_factory=dict[str, Texts])
    """Patterns by the tool that must not be called with what they match: its arguments as compact
    JSON, and each text in them."""

    @field_validator("allowlist", "denylist")
    @classmethod
    def _named(cls, given: Texts | None) -> Texts | None:
        return require_texts(given, "the name of a tool")

    @field_validator("denylist")
    @classmethod
    def _of_actions(cls, given: Texts) -> Texts:
        refuse_models(given)
        return given

    @field_validator("deny_arg_patterns")
    @classmethod
    def _keyed(cls, given: dict[str, Texts]) -> dict[str, Texts]:
        require_texts(tuple(given), "the name of a tool")
        refuse_models(given)
        for patterns in given.values():
            require_texts(patterns, "a pattern")
        return given
