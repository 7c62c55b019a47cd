"""The task tree: it grows while it runs, within its bounds, and can be looked at as a graph."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import InternalError, ValidationError
from executors.ids import NodeId
from planner.tree import ROOT, NodeState, TaskNode, TaskTree, TreeFull

CHILD = NodeId("root.0")
nx: Any = import_module("networkx")  # has no types


def grown(*parents: str) -> TaskTree:
    """Return a tree with one spawned node under each of these parents, in order."""
    tree = TaskTree("whole")
    for n, parent in enumerate(parents):
        assert isinstance(tree.add(NodeId(parent), f"part {n}", origin="spawned"), TaskNode)
    return tree


def test_ids_are_paths_by_the_order_of_adding() -> None:
    tree = grown("root", "root", "root.1", "root")
    assert [node.id for node in tree] == ["root", "root.0", "root.1", "root.1.0", "root.2"]
    assert [(node.depth, node.index) for node in tree.children(ROOT)] == [(1, 0), (1, 1), (1, 2)]
    assert (tree.depth, len(tree), NodeId("root.1.0") in tree) == (2, 5, True)


def test_a_child_can_be_given_the_index_that_it_had_before() -> None:
    tree = TaskTree("whole")
    tree.add(ROOT, "third", origin="planned", index=2)
    tree.add(ROOT, "first", origin="planned", index=0)
    assert isinstance(new := tree.add(ROOT, "next", origin="planned"), TaskNode)
    assert [node.id for node in tree.children(ROOT)] == ["root.0", "root.2", "root.3"]
    assert new.index == 3
    with pytest.raises(InternalError, match=r"'root\.2' is there already"):
        tree.add(ROOT, "again", origin="planned", index=2)


def test_lineage_is_seen_from_both_ends() -> None:
    tree = grown("root", "root.0", "root.0.0")
    leaf = NodeId("root.0.0.0")
    assert [node.id for node in tree.ancestors(leaf)] == ["root.0.0", "root.0", "root"]
    assert (tree.parent(leaf), tree.parent(ROOT)) == ("root.0.0", None)


@pytest.mark.case("K9-8", "K9-11")
def test_models_spawn_a_bounded_number_of_nodes_in_the_life_of_a_tree() -> None:
    tree = TaskTree("whole", spawned=2)
    tree.add(ROOT, "a", origin="spawned")
    tree.add(CHILD, "b", origin="spawned")
    full = tree.add(ROOT, "c", origin="spawned")
    assert full == TreeFull(bound="spawned", limit=2, at=ROOT)
    assert str(full) == "the bound of 2 spawned node(s) of this tree is reached"
    assert isinstance(tree.add(ROOT, "d", origin="planned"), TaskNode)
    assert tree.count(origin="spawned") == 2


@pytest.mark.case("K9-10")
def test_one_node_spawns_a_bounded_number_of_children_however_slowly() -> None:
    tree = TaskTree("whole", children=1)
    tree.add(ROOT, "of a plan", origin="planned", index=7)
    assert isinstance(tree.add(ROOT, "a", origin="spawned", index=0), TaskNode)
    tree.update(CHILD, "done")
    full = tree.add(ROOT, "b", origin="spawned")
    assert full == TreeFull(bound="children", limit=1, at=ROOT)
    assert isinstance(tree.add(CHILD, "c", origin="spawned"), TaskNode)


def test_planned_nodes_have_a_bound_of_their_own() -> None:
    tree = TaskTree("whole", planned=1)
    tree.add(ROOT, "a", origin="planned")
    assert isinstance(tree.add(ROOT, "b", origin="planned"), TreeFull)


def test_a_bound_below_zero_is_refused() -> None:
    with pytest.raises(ValidationError, match="spawned=-1"):
        TaskTree("whole", spawned=-1)


@pytest.mark.case("K9-14")
def test_a_task_that_is_handed_down_unchanged_is_seen() -> None:
    tree = TaskTree("Audit  the code")
    tree.add(ROOT, "read the docs", origin="spawned")
    assert tree.repeats(CHILD, " audit the\nCODE ") == tree.node(ROOT)
    assert tree.repeats(CHILD, "read the docs") == tree.node(CHILD)
    assert tree.repeats(CHILD, "audit the tests") is None


def test_states_are_noted_and_what_is_over_stays_over() -> None:
    tree = grown("root")
    tree.update(CHILD, "running")
    assert tree.update(CHILD, "done").over
    assert (tree.count(state="done"), tree.count(state="pending")) == (1, 1)
    assert tree.update(CHILD, "done").state == "done"
    with pytest.raises(InternalError, match="is done, and cannot be running"):
        tree.update(CHILD, "running")


def test_what_waits_is_ready_when_all_it_waits_for_is_done() -> None:
    tree = grown("root", "root", "root")
    one, two, three = (node.id for node in tree.children(ROOT))
    tree.depend(three, one)
    tree.depend(three, two)
    tree.depend(three, two)
    tree.update(ROOT, "running")
    assert tree.ready() == (one, two)
    tree.update(one, "done")
    assert tree.ready() == (two,)
    tree.update(two, "done")
    assert (tree.ready(), tree.waits_for(three)) == ((three,), (one, two))


def test_nodes_that_would_wait_for_each_other_are_refused() -> None:
    tree = grown("root", "root", "root")
    one, two, three = (node.id for node in tree.children(ROOT))
    tree.depend(two, one)
    tree.depend(three, two)
    below = tree.add(one, "deep", origin="spawned")
    assert isinstance(below, TaskNode)
    for node, needed in ((one, three), (one, one), (ROOT, one), (one, ROOT), (below.id, ROOT)):
        with pytest.raises(InternalError, match="cannot wait"):
            tree.depend(node, needed)


@pytest.mark.parametrize("call", ["node", "children", "ancestors", "waits_for", "parent"])
def test_a_node_that_is_not_there_is_our_fault_and_named(call: str) -> None:
    with pytest.raises(InternalError, match=r"no node 'root\.7'"):
        getattr(TaskTree("whole"), call)(NodeId("root.7"))


def test_what_is_added_while_somebody_looks_is_not_lost_and_breaks_nothing() -> None:
    tree = grown("root")
    seen: list[str] = []
    for node in tree:
        seen.append(node.id)
        if len(tree) < 4:
            tree.add(node.id, "more", origin="spawned")
    assert seen == ["root", "root.0"]
    assert len(list(tree)) == 4


def test_the_graph_is_a_copy_with_fields_and_kinds() -> None:
    tree = grown("root", "root")
    tree.depend(NodeId("root.1"), CHILD)
    graph = tree.graph
    assert isinstance(graph, nx.DiGraph)
    assert graph.nodes["root.0"]["task"] == "part 0"
    assert set(graph.edges(data="kind")) == {
        ("root", "root.0", "lineage"),
        ("root", "root.1", "lineage"),
        ("root.0", "root.1", "depends"),
    }
    graph.remove_node("root")
    assert ROOT in tree
    assert nx.is_directed_acyclic_graph(graph)


def test_json_is_read_by_networkx_too() -> None:
    data: dict[str, Any] = json.loads(grown("root").to_json())
    assert set(nx.node_link_graph(data, edges="edges")) == {"root", "root.0"}


STATES = get_args(NodeState)
shapes = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["spawned", "planned"])), max_size=30
)


@given(shapes, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=20), st.text())
def test_a_tree_reloads_equal(
    parents: list[tuple[int, Any]], waits: list[tuple[int, int]], task: str
) -> None:
    tree = TaskTree(task, spawned=20, children=5)
    for place, origin in parents:
        nodes = list(tree)
        tree.add(nodes[place % len(nodes)].id, task, origin=origin)
    nodes = list(tree)
    for one, two in waits:
        first, second = sorted((one % len(nodes), two % len(nodes)))
        if first != second and nodes[first] not in tree.ancestors(nodes[second].id):
            tree.depend(nodes[second].id, nodes[first].id)
    for n, node in enumerate(nodes):
        tree.update(node.id, STATES[n % len(STATES)])
    again = TaskTree.from_json(tree.to_json())
    assert again.to_json() == tree.to_json()
    assert list(again) == list(tree)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nodes": [], "edges": [], "graph": {}}', '{"nodes": [{"id": 1}]}']
)
def test_what_is_no_tree_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="no task tree"):
        TaskTree.from_json(text)


def test_networkx_is_loaded_by_the_first_tree_and_not_before() -> None:
    root = Path(__file__).resolve().parents[2]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from planner.tree import TaskTree\nbefore = 'networkx' in sys.modules\n"
        "TaskTree('x')\nprint(before, 'networkx' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]
