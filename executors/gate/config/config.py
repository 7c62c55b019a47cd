"""The whole configuration of a gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, cast

from pydantic import Field, model_validator

from executors.gate.config.audit import AuditSection
from executors.gate.config.bash import BashSection
from executors.gate.config.budget import BudgetSection
from executors.gate.config.content import ContentSection
from executors.gate.config.data import DataSection
from executors.gate.config.flags import FlagsSection
from executors.gate.config.fs import FsSection
from executors.gate.config.human import HumanSection
from executors.gate.config.limits import LimitsSection
from executors.gate.config.net import NetSection
from executors.gate.config.secrets import SecretsSection
from executors.gate.config.section import Section
from executors.gate.config.spawning import DeferSection, SpawnSection
from executors.gate.config.tools import ToolsSection

__all__ = ["GateConfig"]


class GateConfig(Section):
    """Everything that a gate is told. What is left out has its default; `[]` and 0 are values.

    An empty list permits nothing where it allows, forbids nothing where it denies, and replaces the
    defaults of `content`; zero is a bound.
    """

    budget: BudgetSection = Field(default_factory=BudgetSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    tools: ToolsSection = Field(default_factory=ToolsSection)
    content: ContentSection = Field(default_factory=ContentSection)
    flags: FlagsSection = Field(default_factory=lambda: FlagsSection({}))
    fs: FsSection = Field(default_factory=FsSection)
    bash: BashSection = Field(default_factory=BashSection)
    net: NetSection = Field(default_factory=NetSection)
    data: DataSection = Field(default_factory=DataSection)
    spawn: SpawnSection = Field(default_factory=SpawnSection)
    defer: DeferSection = Field(default_factory=DeferSection)
    audit: AuditSection = Field(default_factory=AuditSection)
    human: HumanSection = Field(default_factory=HumanSection)
    secrets: SecretsSection = Field(default_factory=SecretsSection)

    @model_validator(mode="after")
    def _is_text(self) -> Self:
        """Refuse what no file can keep: half a character."""
        for text in _texts(self.model_dump()):
            if any("\ud800" <= one <= "\udfff" for one in text):
                raise ValueError(f"{text[:80]!r} holds half a character: give whole ones")
        return self


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in cast("dict[object, object]", value).items():
                yield from _texts(key)
                yield from _texts(inner)
        case list() | tuple() | set() | frozenset():
            for inner in cast("list[object]", value):
                yield from _texts(inner)
        case _:
            return
