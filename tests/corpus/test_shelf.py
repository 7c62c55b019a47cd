"""A corpus within reach of tools: read once, whoever asks first."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import cast

import anyio.lowlevel
import pytest

from corpus.shelf import Once, Shelf
from corpus.sources import open_source
from corpus.stores import RecallSearch
from corpus.tool_texts import ScanFound
from corpus.tools import corpus_tools
from executors.errors import Halted
from executors.ids import NodeId
from executors.replies import JsonValue
from executors.tools.base import Tool, ToolContext

pytestmark = pytest.mark.anyio

AT = ToolContext(node=NodeId("root"), depth=0, round=0, index=0, call_id="c1")


class Store:
    def recall(self, query: str, **_: object) -> list[dict[str, str]]:
        return [{"kind": "fact", "path": "m.md", "body": "remembered fire"}]


class Counted:
    """An asynchronous source that counts how often it is read."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.read = 0

    def opened(self) -> AsyncIterator[str]:
        self.read += 1
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        for text in self.texts:
            await anyio.lowlevel.checkpoint()
            yield text


async def said(tool: Tool, **arguments: JsonValue) -> str:
    return str(await cast("Awaitable[object]", tool.execute(arguments, AT)))


async def count(question: str) -> ScanFound:
    return ScanFound(count=0, ids=(), scanned=2, window=8, passes=2)


@pytest.mark.case("R-097")
async def test_an_asynchronous_source_is_read_once_for_all_tools_at_once(tmp_path: Path) -> None:
    source = Counted("a fire", "calm")
    tools = corpus_tools(Shelf.reading(open_source(source.opened), tmp_path / "spool"))
    search, exact, _ = tools
    texts: list[str] = []

    async def find() -> None:
        texts.append(await said(search, query="fire"))

    async def match() -> None:
        texts.append(await said(exact, terms=["fire"]))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(find)
            group.start_soon(match)
    assert source.read == 1
    assert all("[record] 1: a fire" in text for text in texts)


@pytest.mark.case("R-089")
async def test_with_a_corpus_and_a_judge_all_tools_are_offered(tmp_path: Path) -> None:
    shelf = Shelf.reading(open_source(["a"]), tmp_path / "spool")
    names = [tool.name for tool in corpus_tools(shelf, count=count)]
    assert names == ["scan_count", "search_memory", "exact_match", "read_record"]
    assert [tool.name for tool in corpus_tools(shelf)] == names[1:]


@pytest.mark.case("R-091")
async def test_with_a_memory_alone_only_the_search_is_offered() -> None:
    (tool,) = corpus_tools(None, memory=RecallSearch(Store()))
    assert tool.name == "search_memory"
    assert "[fact] m.md: remembered fire" in await said(tool, query="fire")
    assert corpus_tools(None) == []


async def test_a_memory_is_searched_together_with_the_corpus(tmp_path: Path) -> None:
    shelf = Shelf.reading(open_source(["a fire"]), tmp_path / "spool")
    search = corpus_tools(shelf, memory=RecallSearch(Store()))[0]
    text = await said(search, query="fire")
    assert "[record] 1: a fire" in text
    assert "[fact] m.md: remembered fire" in text


@pytest.mark.case("R-079", "R-097")
async def test_a_halt_of_the_source_passes_through_and_the_next_use_tries_again() -> None:
    halted = Halted(bound="calls", scope="run", limit="1")
    tries: list[int] = []

    async def make() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise halted
        return "made"

    once = Once(make)
    with pytest.raises(Halted) as caught:
        await once()
    assert caught.value is halted
    assert [await once(), await once(), len(tries)] == ["made", "made", 2]
