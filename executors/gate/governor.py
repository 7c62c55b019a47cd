"""What those see of a gate who call tools and ask models: Protocols of plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from executors.errors import Halted
from executors.gate.decisions import Halt, Settled
from executors.ids import NodeId
from executors.replies import JsonValue

if TYPE_CHECKING:
    from executors.models.base import Model

__all__ = ["Deed", "DeedKind", "Done", "Governor", "Outlet", "Reach", "Sight", "halted_by"]

DeedKind = Literal["bash", "read", "write", "edit", "fetch", "spawn", "defer", "tool"]
"""What a tool does, for rules that are about that; "tool": nobody knows, and its name decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that is about to be done."""

    tool: str
    """The tool, or the checkpoint, by name."""
    kind: DeedKind = "tool"
    arguments: Mapping[str, JsonValue]
    context: Mapping[str, JsonValue]
    """The caller's own."""
    node: NodeId
    depth: int
    """Levels below the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it."""

    text: str
    """As a model reads it."""
    failed: bool = False


class Outlet(Protocol):
    """Decides which models texts may go to, and in which form."""

    def model(self, model: Model) -> Model:
        """Return the model to send to: this one, or one that hides in what it sends.

        Raises:
            Halted: no text may go where it is.
        """
        ...


@runtime_checkable
class Reach(Protocol):
    """Says where a fetch may be led while it runs. A governor may be one."""

    def why_not(self, url: str) -> str | None:
        """Return why a URL may not be asked; None where it may. Nothing is counted, nobody is asked."""
        ...


@runtime_checkable
class Sight(Protocol):
    """Says what a search may read while it runs. A governor may be one."""

    def why_not_read(self, path: str) -> str | None:
        """Return why a file or folder may not be read; None where it may. As above: nothing is counted."""
        ...


class Governor(Protocol):
    """Decides about deeds, and keeps books of them. Nothing that is asked of it raises but `Halted`."""

    def offers(self, tool: str) -> bool:
        """Return whether a model is told of a tool at all: by its name alone, and at no cost."""
        ...

    async def check(self, deed: Deed) -> Settled:
        """Decide about a deed; what is admitted is counted at once."""
        ...

    async def record(self, deed: Deed, done: Done, *, aid: str) -> None:
        """Hear what came of a deed.

        Args:
            aid: of the Allow.

        Raises:
            Halted: the books cannot be kept, or what it drew was too much.
        """
        ...

    def drop(self, aid: str) -> None:
        """Hear that a deed did not happen after all."""
        ...


def halted_by(halt: Halt) -> Halted:
    """Return what is raised where a decision stops the run."""
    halted = Halted(bound=halt.rule, scope="run", limit=halt.reason, hint=halt.hint)
    halted.what = f"halted by {halt.rule}: {halt.reason}"
    return halted
