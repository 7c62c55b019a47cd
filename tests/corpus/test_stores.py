"""Stores of memories: read whole as a source, or asked for the best as a search."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from corpus.sources import open_source
from corpus.spool import build_spool
from corpus.stores import PagedStore, RecallSearch, RecallStore, StoreSource
from executors.errors import Halted, SourceError, ValidationError

pytestmark = pytest.mark.anyio


@dataclass
class Entry:
    path: object
    body: object
    kind: object = "fact"


@dataclass
class Memory:
    """A store that counts what it is asked."""

    entries: Sequence[object]
    asked: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    most: int = 1_000

    def enumerate(self, *, kind: str, offset: int, limit: int) -> Sequence[object]:
        self.asked.append((kind, offset, limit))
        return self.entries[offset : offset + min(limit, self.most)]


class AsyncMemory(Memory):
    async def enumerate(  # type: ignore[override]
        self, *, kind: str, offset: int, limit: int
    ) -> Sequence[object]:
        return Memory.enumerate(self, kind=kind, offset=offset, limit=limit)


def facts(number: int) -> list[object]:
    return [Entry(f"notes/{n}.md", f"note {n}") for n in range(number)]


async def read(source: StoreSource) -> list[tuple[str, str]]:
    return [(record.id, record.text) async for record in source]


@pytest.mark.case("R-104")
@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
async def test_a_store_is_read_page_by_page_to_its_end(kind: type[Memory]) -> None:
    memory = kind(facts(450))
    records = await read(StoreSource(memory))
    assert records == [(f"notes/{n}.md", f"note {n}") for n in range(450)]
    assert memory.asked == [("fact", n, 200) for n in (0, 200, 400, 450)]


@pytest.mark.case("R-104")
async def test_a_store_is_given_wherever_a_corpus_is(tmp_path: Path) -> None:
    source = open_source(StoreSource(Memory(facts(30)), kind="episode"))
    spool = await build_spool(source, tmp_path / "spool")
    assert (len(spool), spool.id(7), spool.where(7)) == (30, "notes/7.md", "episode 8")
    again = await build_spool(StoreSource(Memory(facts(30))), tmp_path / "again")
    assert again.info.name == "store of facts"
    assert next(iter(again)).text == "note 0"


async def test_short_pages_end_nothing() -> None:
    assert len(await read(StoreSource(Memory(facts(50), most=7)))) == 50


async def test_an_empty_store_has_no_records() -> None:
    assert await read(StoreSource(Memory([]))) == []


async def test_a_body_that_is_missing_is_an_empty_text() -> None:
    entries = [Entry("a", None), {"path": "b"}, {"path": "c", "body": "x\ud83d"}]
    source = StoreSource(Memory(entries))
    assert await read(source) == [("a", ""), ("b", ""), ("c", "x\ufffd")]
    assert source.warnings.count("lone-surrogates") == 1


@pytest.mark.case("R-084")
async def test_entries_that_are_none_are_refused_and_never_dropped(tmp_path: Path) -> None:
    """D18."""
    with pytest.raises(SourceError, match="the path 7 is no text"):
        await read(StoreSource(Memory([Entry(7, "x")])))
    with pytest.raises(SourceError, match="the body of 'a' is a bytes"):
        await read(StoreSource(Memory([Entry("a", b"x")])))
    with pytest.raises(SourceError, match=r"1 record\(s\) have no id"):
        await build_spool(StoreSource(Memory([Entry(None, "x")])), tmp_path / "spool")


async def test_a_store_that_gives_one_page_for_ever_is_seen() -> None:
    class Stuck(Memory):
        def enumerate(self, *, kind: str, offset: int, limit: int) -> Sequence[object]:
            return self.entries

    with pytest.raises(SourceError, match=r"begins with 'notes/0\.md' twice"):
        await read(StoreSource(Stuck(facts(3))))


@pytest.mark.case("R-079")
async def test_a_halt_of_the_store_passes_through_untouched(tmp_path: Path) -> None:
    halted = Halted(bound="calls", scope="run", limit="1")

    class Halting(Memory):
        def enumerate(self, *, kind: str, offset: int, limit: int) -> Sequence[object]:
            raise halted

    with pytest.raises(Halted) as caught:
        await build_spool(StoreSource(Halting([])), tmp_path / "spool")
    assert caught.value is halted


async def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(ValidationError, match="'list' is no store"):
        StoreSource(cast("PagedStore", []))
    with pytest.raises(ValidationError, match="page=0"):
        StoreSource(Memory([]), page=0)
    with pytest.raises(ValidationError, match="'list' recalls nothing"):
        RecallSearch(cast("RecallStore", []))


async def test_a_store_that_returns_no_list_is_refused() -> None:
    class Odd(Memory):
        def enumerate(self, *, kind: str, offset: int, limit: int) -> Sequence[object]:
            return cast("Sequence[object]", {"path": "a"})

    with pytest.raises(SourceError, match="returned a dict"):
        await read(StoreSource(Odd([])))


class Recalling:
    def __init__(self, found: Sequence[object]) -> None:
        self.found = found
        self.asked: list[tuple[str, tuple[str, ...], int]] = []

    def recall(self, query: str, *, kinds: Sequence[str], n: int) -> Sequence[object]:
        self.asked.append((query, tuple(kinds), n))
        return self.found


@pytest.mark.case("R-094")
async def test_a_recall_is_a_search_and_asks_for_facts_and_episodes() -> None:
    store = Recalling([Entry("a.md", "the lease"), {"path": "b.md", "kind": "episode"}])
    search = RecallSearch(store)
    hits = await search.search("who signed?")
    assert store.asked == [("who signed?", ("fact", "episode"), 8)]
    shown = [(hit.kind, hit.id, hit.snippet, hit.ordinal, hit.how) for hit in hits]
    assert shown == [
        ("fact", "a.md", "the lease", None, "memory"),
        ("episode", "b.md", "", None, "memory"),
    ]
    assert hits[0].score > hits[1].score
    assert search.records is None
