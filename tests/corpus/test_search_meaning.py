"""Search by meaning, and several searches as one."""

import stat
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpus.search import Hit, How, HybridSearch, Searcher, TermSearch, VectorSearch, open_search
from corpus.search.vectors import VECTORS
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.errors import ModelError, ValidationError
from executors.models.encoders.base import Vectors
from executors.models.encoders.cache import CachedEncoder
from executors.models.encoders.load import load_encoder

pytestmark = pytest.mark.anyio

TOPICS = ("fire", "water", "money")
RECORDS = [
    ("blaze", "flames everywhere, a fire"),
    ("flood", "water in the cellar"),
    ("bank", "the bank wants its money"),
    ("burst", "water and fire"),
    ("blank", " "),
    ("copy", "water in the cellar"),
]


class TopicEncoder:
    """Vectors that tell how often a text speaks of three things."""

    name = "topics"
    dimensions = 3
    max_words = 60

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.encoded = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.encoded += len(texts)
        rows = np.array([[t.count(topic) + 0.01 for topic in TOPICS] for t in texts], np.float32)
        vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return vectors

    def close(self) -> None:
        """Nothing to let go of."""


async def spooled(folder: Path, records: Sequence[tuple[str, str]] = RECORDS) -> Spool:
    return await build_spool(open_source(list(records)), folder / "spool")


async def test_records_are_found_by_meaning_best_first(tmp_path: Path) -> None:
    search = await VectorSearch.open(await spooled(tmp_path), tmp_path, TopicEncoder())
    hits = await search.search("water", limit=2)
    assert [(hit.id, hit.ordinal, hit.identical) for hit in hits] == [
        ("flood", 1, 1),
        ("burst", 3, 0),
    ]
    assert hits[0].score > hits[1].score
    assert hits[0].how == "meaning"


async def test_vectors_are_kept_in_a_private_file_and_made_once(tmp_path: Path) -> None:
    spool, encoder = await spooled(tmp_path), TopicEncoder()
    await VectorSearch.open(spool, tmp_path, encoder)
    assert encoder.encoded == 4
    await VectorSearch.open(spool, tmp_path, encoder)
    assert encoder.encoded == 4
    assert stat.S_IMODE((tmp_path / VECTORS).stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.new"))
    await VectorSearch.open(spool, tmp_path, encoder, fresh=True)
    assert encoder.encoded == 8


async def test_vectors_of_another_encoder_or_torn_ones_are_made_anew(tmp_path: Path) -> None:
    spool = await spooled(tmp_path)
    await VectorSearch.open(spool, tmp_path, TopicEncoder())
    other = TopicEncoder(version="2")
    await VectorSearch.open(spool, tmp_path, other)
    assert other.encoded == 4
    whole = (tmp_path / VECTORS).read_bytes()
    (tmp_path / VECTORS).write_bytes(whole[:-1])
    await VectorSearch.open(spool, tmp_path, other)
    assert (tmp_path / VECTORS).read_bytes() == whole


async def test_a_cache_makes_each_vector_once_for_all_spools(tmp_path: Path) -> None:
    encoder = TopicEncoder()
    cached = CachedEncoder(encoder, tmp_path / "cache.sqlite")
    for name in ("1", "2"):
        await VectorSearch.open(await spooled(tmp_path / name), tmp_path / name, cached)
    assert encoder.encoded == 4


async def test_an_empty_corpus_has_no_hits(tmp_path: Path) -> None:
    spool = await spooled(tmp_path, [("blank", "")])
    search = await open_search(spool, tmp_path, encoder=TopicEncoder())
    assert await search.search("fire") == ()


async def test_an_encoder_that_fails_leaves_no_file(tmp_path: Path) -> None:
    class Failing(TopicEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            raise ModelError("the engine failed")

    spool = await spooled(tmp_path)
    with pytest.raises(ModelError, match="engine failed"):
        await VectorSearch.open(spool, tmp_path / "index", Failing())
    assert list((tmp_path / "index").iterdir()) == []


# ---------------------------------------------------------------- several as one


def hit(id_: str, how: How = "meaning") -> Hit:
    return Hit(id=id_, ordinal=0, score=1, snippet="", span=(0, 0), length=0, how=how)


class Fixed:
    name = "fixed"

    def __init__(self, how: How, *ids: str, records: int | None = 9) -> None:
        self.hits = [hit(id_, how) for id_ in ids]
        self.records = records

    async def search(self, query: str, *, limit: int = 8) -> tuple[Hit, ...]:
        return tuple(self.hits[:limit])


async def test_what_several_searches_find_comes_first() -> None:
    words, meaning = Fixed("all-words", "a", "b", "c"), Fixed("meaning", "d", "c", "e")
    found = await HybridSearch([words, meaning]).search("x", limit=4)
    assert [(one.id, one.how) for one in found] == [
        ("c", "words-and-meaning"),
        ("a", "all-words"),
        ("d", "meaning"),
        ("b", "all-words"),
    ]
    assert found[0].score == pytest.approx(1 / 63 + 1 / 62)


async def test_a_mixture_knows_its_records_only_where_all_do() -> None:
    one, other = Fixed("meaning", "a"), Fixed("memory", "b", records=None)
    assert HybridSearch([one, one]).records == 9
    assert HybridSearch([one, other]).records is None
    assert HybridSearch([one, other]).name == "fixed and fixed"
    with pytest.raises(ValidationError, match="no search to fuse"):
        HybridSearch([])


async def test_a_corpus_is_searched_by_words_and_by_meaning_where_an_encoder_is(
    tmp_path: Path,
) -> None:
    spool = await spooled(tmp_path)
    plain: Searcher = await open_search(spool, tmp_path)
    assert isinstance(plain, TermSearch)
    both = await open_search(spool, tmp_path, encoder=TopicEncoder())
    assert both.name == "words and meaning"
    hits = await both.search("fire flames")
    assert (hits[0].id, hits[0].how) == ("blaze", "words-and-meaning")


@pytest.mark.slow
async def test_the_real_encoder_finds_what_no_word_tells(tmp_path: Path) -> None:
    records = [
        ("match", "The goalkeeper saved a penalty in the last minute."),
        ("shares", "The company cut its profit forecast and its stock fell."),
        ("loaf", "Knead the dough and let it rise overnight."),
    ]
    encoder = load_encoder("encoder:minilm", threads=1)
    try:
        search = await open_search(await spooled(tmp_path, records), tmp_path, encoder=encoder)
        hits = await search.search("baking bread at home", limit=1)
    finally:
        encoder.close()
    assert [(hit.id, hit.how) for hit in hits] == [("loaf", "meaning")]
