"""How a worker looks into a corpus: judged, searched, matched, or by tools that it chooses from."""

from typing import Any

import pytest

import rlm
from executors.messages import ModelRequest
from tests.rlm.trees import COMPLEX, SIMPLE, asked, calls, cast, results_of, said, task_of

pytestmark = pytest.mark.anyio

TICKETS = [
    ("t1", "The customer wants a refund for invoice INV-204."),
    ("t2", "The printer on the second floor is on fire."),
    ("t3", "Password reset for the night shift."),
    ("t4", "A small fire in the kitchen was put out."),
]


def result(outcome: rlm.RecurseOutcome) -> object:
    assert isinstance(outcome, rlm.Completed), outcome
    return outcome.result


@pytest.mark.case("R-085", "R-086")
@pytest.mark.parametrize(
    ("task", "contract"),
    [("how many tickets tell of a fire?", None), ("find the fire", "every ticket is looked at")],
)
async def test_a_question_that_needs_every_record_is_never_only_searched(
    task: str, contract: str | None
) -> None:
    model = cast()
    outcome = await rlm.recurse(task, model, corpus=TICKETS, retrieval="search", contract=contract)
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.result, rlm.Tally)
    assert outcome.result.count == 2
    task_receipt = outcome.receipts.nodes[0].task
    assert task_receipt is not None
    assert (task_receipt.retrieval, task_receipt.upgraded) == ("scan", True)
    assert asked(model, "judge")


@pytest.mark.case("R-087", "R-094")
async def test_a_needle_is_searched_for_by_the_workers_tool() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        return said(found[0]) if found else calls("search_memory", {"query": "refund invoice"})

    model = cast(work)
    outcome = await rlm.recurse("who wants a refund?", model, corpus=TICKETS, retrieval="search")
    assert "t1" in str(result(outcome))
    assert "INV-204" in str(result(outcome))
    offered = {tool.name for tool in asked(model, "worker")[0].tools}
    assert offered == {"search_memory", "read_record"}


@pytest.mark.case("R-089", "R-090")
async def test_tools_let_the_worker_choose_and_code_counts() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        if found:
            return said("\n".join(found))
        return rlm.ModelReply(
            text="",
            stop="tool_use",
            calls=(
                *calls("scan_count", {"question": "Is there a fire?"}).calls,
                rlm.ToolCall(id="x", name="exact_match", arguments='{"terms": ["INV-204"]}'),
            ),
        )

    model = cast(work)
    outcome = await rlm.recurse(
        "how many fires, and who has INV-204?", model, corpus=TICKETS, retrieval="tools"
    )
    told = str(result(outcome))
    assert "count=2 (scanned 4 records, window=8, passes=2)" in told
    assert "t1" in told
    names = {tool.name for tool in asked(model, "worker")[0].tools}
    assert names == {"scan_count", "search_memory", "exact_match", "read_record"}
    assert [node.id for node in outcome.receipts.nodes if node.parent == "root"] == ["root.0"]


async def test_scans_and_children_of_one_round_have_places_of_their_own() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        if results_of(request) or COMPLEX not in task_of(request):
            return said("ok")
        scan = calls("scan_count", {"question": "Is there a fire?"}).calls
        child = rlm.ToolCall(id="s", name="spawn_child", arguments='{"subtask": "list it"}')
        return rlm.ModelReply(text="", stop="tool_use", calls=(*scan, child))

    outcome = await rlm.recurse(COMPLEX, cast(work), corpus=TICKETS, retrieval="tools")
    names = {node.id: node.name for node in outcome.receipts.nodes if node.parent == "root"}
    assert names == {"root.0": "scan_count: Is there a fire?", "root.1": "list it"}


@pytest.mark.case("R-095", "R-097")
async def test_a_corpus_of_its_own_is_within_reach_of_any_worker() -> None:
    def work(request: ModelRequest) -> rlm.ModelReply:
        found = results_of(request)
        if len(found) == 1:
            return calls("search_memory", {"query": "kitchen"})
        return said("\n".join(found)) if found else calls("scan_count", {"question": "a fire?"})

    model = cast(work)
    tools = [rlm.build_scan_tool(iter(TICKETS), model=model), rlm.build_search_tool(TICKETS)]
    told = str(result(await rlm.recurse(SIMPLE, model, tools=tools)))
    assert "count=2 (scanned 4 records, window=8, passes=2)" in told
    assert "t4" in told


@pytest.mark.case("R-187", "R-081 / D13")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"window": 0}, "window=0"),
        ({"passes": -1}, "passes=-1"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"model": None}, "model=None"),
    ],
)
def test_a_tool_that_could_not_count_is_refused_where_it_is_made(
    options: dict[str, Any], says: str
) -> None:
    given: dict[str, Any] = {"model": cast(lambda request: said("x"))}
    with pytest.raises(rlm.ValidationError, match=says):
        rlm.build_scan_tool(TICKETS, **(given | options))
    with pytest.raises(rlm.ValidationError, match="limit=0"):
        rlm.build_search_tool(TICKETS, limit=0)


class Memories:
    """A store of thirty memories, every second of which tells of a fire."""

    def enumerate(self, *, kind: str, offset: int, limit: int) -> list[dict[str, str]]:
        known = [
            {"path": f"{kind}/{n}", "body": f"memory {n}: {'a fire' if n % 2 else 'calm'}"}
            for n in range(30)
        ]
        return known[offset : offset + limit]


@pytest.mark.case("R-104")
async def test_a_store_of_memories_is_partitioned_like_any_corpus() -> None:
    outcome = await rlm.recurse(
        "Is there a fire?",
        cast(),
        corpus=rlm.StoreSource(Memories()),
        mode="partition",
        worker_budget=10,
    )
    assert isinstance(outcome, rlm.Completed)
    assert isinstance(outcome.result, rlm.Tally)
    assert (outcome.result.records, outcome.result.count) == (30, 15)
    assert len([node for node in outcome.receipts.nodes if node.parent == "root"]) == 3
