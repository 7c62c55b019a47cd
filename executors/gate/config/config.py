"""The whole configuration of a gate."""

from __future__ import annotations

from pydantic import Field

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
