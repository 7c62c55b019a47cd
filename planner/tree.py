"""The task tree: what became of a task, node by node, while it grows. Pure.

A typed wrapper of an `nx.DiGraph`, and the only module that touches its attributes. Two kinds of
edges: "lineage" from a task to its parts, "depends" from a step to the step that waits for it.
Nobody iterates over the graph itself: it grows while it runs, and what is added behind the back of
an iteration over its generations is never seen. `graph` is a copy, to look at and to explore.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any, Final, Literal, Self, get_args

from executors.errors import InternalError, ValidationError
from executors.ids import NodeId, child_of

__all__ = ["ROOT", "EdgeKind", "NodeState", "Origin", "TaskNode", "TaskTree", "TreeFull"]

NodeState = Literal["pending", "running", "done", "incomplete", "failed", "skipped", "halted"]
EdgeKind = Literal["lineage", "depends"]
Origin = Literal["root", "spawned", "planned"]
"""Who wanted a node: the user, a model that works, or a plan, forced width or partition."""

ROOT: Final = NodeId("root")
_OVER: Final = frozenset({"done", "incomplete", "failed", "skipped", "halted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode:
    """One piece of a task."""

    id: NodeId
    task: str
    depth: int
    """0 for the root."""
    index: int
    """Which child of its parent it is, from 0; the root is 0 too."""
    origin: Origin
    state: NodeState = "pending"

    @property
    def over(self) -> bool:
        """Nothing more will come of it."""
        return self.state in _OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFull:
    """No node was added: a bound of the tree is reached."""

    bound: Literal["spawned", "planned", "children"]
    """Nodes that models spawned in all; nodes that plans made; children of one node in its life."""
    limit: int
    at: NodeId
    """Who wanted one more."""

    def __str__(self) -> str:
        whose = f"node {self.at}" if self.bound == "children" else "this tree"
        return f"the bound of {self.limit} {self.bound} node(s) of {whose} is reached"


class TaskTree:
    """A tree of tasks that grows from its root.

    Args:
        task: of the root.
        spawned: nodes that models may spawn in the life of the tree.
        planned: nodes that plans, forced widths and partitions may make.
        children: nodes that one node may spawn in its life, one after another or at once.

    Raises:
        ValidationError: a bound below 0.
    """

    def __init__(
        self, task: str, *, spawned: int = 256, planned: int = 100_000, children: int = 256
    ) -> None:
        self.limits: Final[Mapping[str, int]] = {
            "spawned": spawned,
            "planned": planned,
            "children": children,
        }
        for name, limit in self.limits.items():
            if limit < 0:
                raise ValidationError(f"{name}={limit!r}", hint="give a whole number from 0 on")
        self._graph: Any = _networkx().DiGraph()
        self._counts: Counter[str] = Counter()
        self._spawned_by: Counter[NodeId] = Counter()
        self._put(TaskNode(id=ROOT, task=task, depth=0, index=0, origin="root"))

    # ---------------------------------------------------------------- growing

    def add(
        self,
        parent: NodeId,
        task: str,
        *,
        origin: Literal["spawned", "planned"],
        index: int | None = None,
    ) -> TaskNode | TreeFull:
        """Add a child, or say which bound forbids it.

        Args:
            index: which child it is, where the caller has a reason to say so, such as a resume that
                must name it as before; None is the next one.

        Raises:
            InternalError: the parent is not there, or it has a child of that index.
        """
        above = self.node(parent)
        if (full := self._full(parent, origin)) is not None:
            return full
        at = self._graph.nodes[parent]
        number = at["next"] if index is None else index
        node = TaskNode(
            id=child_of(parent, number),
            task=task,
            depth=above.depth + 1,
            index=number,
            origin=origin,
        )
        if node.id in self._graph:
            raise InternalError(f"the node {node.id!r} is there already")
        at["next"] = max(at["next"], number + 1)
        self._put(node)
        self._graph.add_edge(parent, node.id, kind="lineage")
        self._counts[origin] += 1
        self._spawned_by[parent] += origin == "spawned"
        return node

    def depend(self, node: NodeId, needed: NodeId) -> None:
        """Say that a node waits for another one.

        Raises:
            InternalError: one of them is not there, they are the same, one stands above the other,
                or the other one waits for this one, near or far.
        """
        edge: str | None = self._graph.edges.get((needed, node), {}).get("kind")
        if edge == "depends":
            return
        above = {one.id for one in self.ancestors(node)}
        if node == self.node(needed).id or needed in above or self._reaches(node, needed):
            raise InternalError(f"the node {node!r} cannot wait for {needed!r}")
        self._graph.add_edge(needed, node, kind="depends")

    def update(self, node: NodeId, state: NodeState) -> TaskNode:
        """Note a node's new state and return it.

        Raises:
            InternalError: the node is not there, or it is over and so stays what it is.
        """
        before = self.node(node)
        if before.over and before.state != state:
            raise InternalError(f"the node {node!r} is {before.state}, and cannot be {state}")
        after = replace(before, state=state)
        self._graph.nodes[node]["node"] = after
        return after

    def _full(self, parent: NodeId, origin: Literal["spawned", "planned"]) -> TreeFull | None:
        if self._counts[origin] >= self.limits[origin]:
            return TreeFull(bound=origin, limit=self.limits[origin], at=parent)
        if origin == "spawned" and self._spawned_by[parent] >= self.limits["children"]:
            return TreeFull(bound="children", limit=self.limits["children"], at=parent)
        return None

    def _put(self, node: TaskNode) -> None:
        self._graph.add_node(node.id, node=node, next=0)

    def _reaches(self, start: NodeId, goal: NodeId) -> bool:
        seen, left = {start}, deque([start])
        while left:
            for after in self._graph.successors(left.popleft()):
                if after == goal:
                    return True
                if after not in seen:
                    seen.add(after)
                    left.append(after)
        return False

    # ---------------------------------------------------------------- looking up

    def node(self, id_: NodeId) -> TaskNode:
        """Return a node.

        Raises:
            InternalError: it is not there.
        """
        if id_ not in self._graph:
            raise InternalError(f"the tree has no node {id_!r}")
        node: TaskNode = self._graph.nodes[id_]["node"]
        return node

    def parent(self, id_: NodeId) -> NodeId | None:
        """Return who handed a node its task; None for the root."""
        return next(
            self._over("lineage", self._graph.in_edges(self.node(id_).id, data="kind")), None
        )

    def children(self, id_: NodeId) -> tuple[TaskNode, ...]:
        """Return the parts of a node, by their index."""
        found = self._under("lineage", self._graph.out_edges(self.node(id_).id, data="kind"))
        return tuple(sorted(map(self.node, found), key=lambda node: node.index))

    def ancestors(self, id_: NodeId) -> tuple[TaskNode, ...]:
        """Return all above a node, its parent first."""
        found: list[TaskNode] = []
        at = self.parent(id_)
        while at is not None:
            found.append(self.node(at))
            at = self.parent(at)
        return tuple(found)

    def waits_for(self, id_: NodeId) -> tuple[NodeId, ...]:
        """Return what a node waits for."""
        return tuple(self._over("depends", self._graph.in_edges(self.node(id_).id, data="kind")))

    def ready(self) -> tuple[NodeId, ...]:
        """Return the pending nodes all of whose needs are done; linear in the tree."""
        return tuple(
            node.id
            for node in self
            if node.state == "pending"
            and all(self.node(needed).state == "done" for needed in self.waits_for(node.id))
        )

    def repeats(self, parent: NodeId, task: str) -> TaskNode | None:
        """Return the nearest of a node and its ancestors that was given this same task already.

        A task handed down as it is gets nobody further: it should be done, not handed out again.
        Case and blanks make no difference.
        """
        wanted = _essence(task)
        line = (self.node(parent), *self.ancestors(parent))
        return next((node for node in line if _essence(node.task) == wanted), None)

    def count(self, *, state: NodeState | None = None, origin: Origin | None = None) -> int:
        """Return how many nodes there are, of a state, of an origin, or of both."""
        return sum(
            (state is None or node.state == state) and (origin is None or node.origin == origin)
            for node in self
        )

    @property
    def depth(self) -> int:
        """Of the deepest node."""
        return max(node.depth for node in self)

    def __iter__(self) -> Iterator[TaskNode]:
        """Iterate over the nodes that are there now, in the order in which they were added."""
        return iter([node for _, node in self._graph.nodes(data="node")])

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._graph

    @staticmethod
    def _over(kind: EdgeKind, edges: Iterable[tuple[NodeId, NodeId, str]]) -> Iterator[NodeId]:
        return (source for source, _, found in edges if found == kind)

    @staticmethod
    def _under(kind: EdgeKind, edges: Iterable[tuple[NodeId, NodeId, str]]) -> Iterator[NodeId]:
        return (target for _, target, found in edges if found == kind)

    # ---------------------------------------------------------------- showing

    @property
    def graph(self) -> Any:  # noqa: ANN401 - networkx has no types
        """A copy as an `nx.DiGraph`: nodes carry the fields of `TaskNode`, edges their kind."""
        copy: Any = _networkx().DiGraph()
        copy.add_nodes_from((node.id, asdict(node)) for node in self)
        copy.add_edges_from(self._graph.edges(data=True))
        return copy

    def to_json(self) -> str:
        """Return the tree as JSON in networkx's node-link form, which `from_json` reads."""
        data = _networkx().node_link_data(self.graph, edges="edges")
        return json.dumps({**data, "graph": dict(self.limits)}, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the tree that `to_json` wrote.

        Raises:
            ValidationError: this is no such text.
        """
        try:
            data = json.loads(text)
            nodes = [_node_of(node) for node in data["nodes"]]
            edges = [(e["source"], e["target"], e["kind"]) for e in data["edges"]]
            tree = cls(nodes[0].task, **data["graph"])
            tree._load(nodes, edges)
        except (ValueError, TypeError, KeyError, IndexError, InternalError) as error:
            raise ValidationError(
                f"this is no task tree: {type(error).__name__}", hint="give what to_json wrote"
            ) from None
        return tree

    def _load(self, nodes: list[TaskNode], edges: list[tuple[NodeId, NodeId, str]]) -> None:
        parents = {target: source for source, target, kind in edges if kind == "lineage"}
        for node in nodes[1:]:
            match node.origin:
                case "root":
                    raise ValidationError(f"{node.id!r} is a second root")
                case origin:
                    self.add(parents[node.id], node.task, origin=origin, index=node.index)
        for source, target, kind in edges:
            if kind == "depends":
                self.depend(target, source)
        for node in nodes:
            self.update(node.id, node.state)

    def _edges(self) -> Iterator[tuple[NodeId, NodeId, str]]:
        yield from self._graph.edges(data="kind")


def _networkx() -> Any:  # noqa: ANN401 - it has no types
    return import_module("networkx")  # a tenth of a second, and most runs are no trees


def _essence(task: str) -> str:
    return " ".join(task.split()).casefold()


def _node_of(fields: Mapping[str, Any]) -> TaskNode:
    node = TaskNode(**fields)
    if node.state not in get_args(NodeState) or node.origin not in get_args(Origin):
        raise ValueError(node.state)
    return node
