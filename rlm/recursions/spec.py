"""One node of a tree, as it is set to work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from executors.ids import NodeId, child_of
from executors.secrets import scrub
from rlm.recursions.options import RecurseOptions

__all__ = ["Spec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a node has to do."""

    node: NodeId
    task: str
    depth: int
    index: int
    """Among its siblings, from 0: the sample that its worker's calls are."""
    options: RecurseOptions
    records: range | None = None
    """The part of the corpus that is its business; None for no corpus."""
    name: str = ""
    """What people call it; the task where it has no name of its own."""
    ids: tuple[str, ...] = ()
    """Of the records that it is shown to read, each once."""

    def child(self, index: int, task: str, *, name: str = "", ids: tuple[str, ...] = ()) -> Self:
        """Return a child of it; it inherits what `RecurseOptions.for_child` lets it."""
        return replace(
            self,
            node=child_of(self.node, index),
            task=task,
            depth=self.depth + 1,
            index=index,
            options=self.options.for_child(),
            records=None,
            name=name,
            ids=ids,
        )

    @property
    def title(self) -> str:
        """One line for people."""
        line = scrub(" ".join((self.name or self.task).split()))
        return line if len(line) <= 80 else f"{line[:79]}…"
