"""Search by words: what is found, how it is said, and that no query is an order to the engine."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.erasing import erase_texts
from corpus.search import TermSearch
from corpus.search.index import INDEX
from corpus.search.words import read_query
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from executors.errors import RunDirError, ValidationError
from tests.support.nasty import any_text, nasty_corpus

pytestmark = pytest.mark.anyio

RECORDS = [
    ("lease", "The multi-agent lease was signed by Bob in Harbour Street."),
    ("swapped", "An agent of multi national firms."),
    ("chinese", "\u6211\u8981\u9000\u6b3e\u4e86\uff0c\u5728\u4e0a\u6d77"),
    ("german", "Die STRASSE ist lang, das Cafe\u0301 zu."),
    ("hindi", "\u0915\u093f\u0924\u093e\u092c \u0932\u093e\u0932 \u0939\u0948"),
    ("thai", "\u0e40\u0e2d\u0e01\u0e2a\u0e32\u0e23\u0e04\u0e37\u0e19\u0e40\u0e07\u0e34\u0e19"),
    ("fire", "a fire in the harbour"),
    ("copy", "a fire in the harbour"),
    ("blank", " \n"),
]


async def opened(folder: Path, records: Sequence[tuple[str, str]] = RECORDS) -> TermSearch:
    spool = await build_spool(open_source(list(records)), folder / "spool")
    return await TermSearch.open(spool, folder / "spool")


async def ids(search: TermSearch, query: str) -> list[str]:
    return [hit.id for hit in await search.search(query)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("signed lease", "lease"),
        ("stra\u00dfe", "german"),
        ("CAFE", "german"),
        ("caf\u00e9", "german"),
        ("\u9000\u6b3e", "chinese"),
        ("\u54ea\u4e9b\u8981\u9000\u6b3e", "chinese"),
        ("\u0915\u093f\u0924\u093e\u092c", "hindi"),
        ("\u0e04\u0e37\u0e19\u0e40\u0e07\u0e34\u0e19", "thai"),
        ("\uff26\uff29\uff32\uff25", "fire"),
    ],
)
async def test_words_are_found_in_any_script_and_form(
    tmp_path: Path, query: str, first: str
) -> None:
    assert (await ids(await opened(tmp_path), query))[0] == first


async def test_vowel_signs_are_parts_of_words(tmp_path: Path) -> None:
    """Without them another word has the same letters."""
    search = await opened(tmp_path)
    assert await ids(search, "\u0915\u0940\u0924\u094b\u092c") == []


@pytest.mark.case("K14-17")
async def test_a_hyphen_is_no_operator(tmp_path: Path) -> None:
    hits = await (await opened(tmp_path)).search("multi-agent")
    found = [(hit.id, hit.how) for hit in hits]
    assert found == [("lease", "all-words"), ("swapped", "some-words")]


@pytest.mark.case("K14-17")
@pytest.mark.parametrize(
    "query",
    ['say "lease"', "lease AND", "NOT lease", "id:lease", "lease*", "(lease", "^lease", "'"],
)
async def test_what_looks_like_an_operator_is_plain_text(tmp_path: Path, query: str) -> None:
    search = await opened(tmp_path)
    if query == "'":
        with pytest.raises(ValidationError, match="no letter and no digit"):
            await search.search(query)
    else:
        assert (await ids(search, query))[0] == "lease"


@pytest.mark.case("K14-17")
def test_quotes_are_doubled_inside_quotes() -> None:
    assert read_query('a"b').every() == '"a""b"'


@pytest.mark.case("K14-19")
async def test_records_with_all_words_come_first_and_the_others_are_marked(tmp_path: Path) -> None:
    hits = await (await opened(tmp_path)).search("harbour fire")
    assert [(hit.id, hit.how) for hit in hits] == [("fire", "all-words"), ("lease", "some-words")]
    again = await (await opened(tmp_path / "again")).search("lease fire")
    assert {hit.how for hit in again} == {"some-words"}


@pytest.mark.case("K14-19")
async def test_no_hits_are_no_error(tmp_path: Path) -> None:
    assert await (await opened(tmp_path)).search("database migration") == ()


@pytest.mark.case("K14-19")
async def test_an_index_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    search = await opened(tmp_path)
    (tmp_path / "spool" / INDEX).write_bytes(b"no database" * 100)
    with pytest.raises(RunDirError, match="cannot be read"):
        await search.search("lease")


async def test_a_text_that_stands_twice_is_one_hit(tmp_path: Path) -> None:
    hits = await (await opened(tmp_path)).search("a fire in the harbour")
    assert (hits[0].id, hits[0].identical) == ("fire", 1)
    assert "copy" not in {hit.id for hit in hits}


async def test_a_hit_shows_the_passage_and_where_it_stands(tmp_path: Path) -> None:
    text = "word " * 3_000 + "the N\u00e9edle in a haystack" + " word" * 3_000
    search = await opened(tmp_path, [("long", text)])
    (hit,) = await search.search("needle haystack")
    assert "N\u00e9edle in a haystack" in hit.snippet
    assert hit.snippet == text[hit.span[0] : hit.span[1]]
    assert (hit.length, len(hit.snippet)) == (len(text), 1_000)


@pytest.mark.parametrize("query", ["", "  ", "--- ***", "\x00"])
async def test_a_query_of_nothing_is_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(ValidationError, match="no letter and no digit"):
        await (await opened(tmp_path)).search(query)


@pytest.mark.parametrize("limit", [0, -1, 1_001, True])
async def test_a_limit_outside_is_refused(tmp_path: Path, limit: int) -> None:
    with pytest.raises(ValidationError, match=f"limit={limit}"):
        await (await opened(tmp_path)).search("lease", limit=limit)


async def test_the_index_is_private_and_leaves_no_draft(tmp_path: Path) -> None:
    await opened(tmp_path)
    path = tmp_path / "spool" / INDEX
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(path.parent.glob("*.new"))


async def test_an_index_is_kept_while_it_fits_and_rebuilt_when_it_does_not(tmp_path: Path) -> None:
    def inode() -> int:
        return (tmp_path / "index" / INDEX).stat().st_ino

    first = await build_spool(open_source([("a", "one"), ("b", "two")]), tmp_path / "1")
    await TermSearch.open(first, tmp_path / "index")
    built = inode()
    await TermSearch.open(first, tmp_path / "index")
    assert inode() == built
    swapped = await build_spool(open_source([("b", "two"), ("a", "one")]), tmp_path / "2")
    search = await TermSearch.open(swapped, tmp_path / "index")
    assert inode() != built
    assert [hit.ordinal for hit in await search.search("one")] == [1]


async def test_a_folder_may_be_called_anything(tmp_path: Path) -> None:
    search = await opened(tmp_path / "a?mode=rwc&b#c%20d '\u00e9")
    assert await ids(search, "signed lease") == ["lease"]


@pytest.mark.parametrize("content", [b"", b"torn", b"SQLite format 3\x00" + b"\xff" * 5_000])
async def test_a_damaged_index_is_built_anew(tmp_path: Path, content: bytes) -> None:
    await opened(tmp_path)
    (tmp_path / "spool" / INDEX).write_bytes(content)
    with Spool.open(tmp_path / "spool") as spool:
        search = await TermSearch.open(spool, tmp_path / "spool")
        assert await ids(search, "lease") == ["lease"]


@pytest.mark.case("K14-1", "K14-2", "K14-4")
async def test_many_builders_and_readers_of_one_index_never_meet(tmp_path: Path) -> None:
    spool = await build_spool(open_source(RECORDS), tmp_path / "spool")
    found: list[list[str]] = []

    async def use() -> None:
        search = await TermSearch.open(spool, tmp_path)
        found.append(await ids(search, "signed lease"))

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(use)
    assert found == [["lease"]] * 12
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [INDEX]


async def test_a_build_that_is_cancelled_leaves_what_was_there(tmp_path: Path) -> None:
    spool = await build_spool(open_source(f"text {n}" for n in range(5_000)), tmp_path / "spool")
    (tmp_path / INDEX).write_bytes(b"former")
    with anyio.CancelScope() as scope:
        await TermSearch.open(spool, tmp_path, on_progress=lambda _: scope.cancel())
    assert scope.cancelled_caught
    assert (tmp_path / INDEX).read_bytes() == b"former"
    assert not list(tmp_path.glob("*.new"))


async def test_what_a_killed_build_left_goes_after_a_day(tmp_path: Path) -> None:
    old, young = (tmp_path / f"{INDEX}.{name}.new" for name in ("0a", "0b"))
    for left in (old, young):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    await opened(tmp_path)
    spool = Spool.open(tmp_path / "spool")
    await TermSearch.open(spool, tmp_path)
    assert (old.exists(), young.exists()) == (False, True)


async def test_an_index_from_elsewhere_is_never_opened(tmp_path: Path) -> None:
    spool = await build_spool(open_source(RECORDS), tmp_path / "spool")
    await TermSearch.open(spool, tmp_path)
    planted = (tmp_path / INDEX).stat().st_ino
    search = await TermSearch.open(spool, tmp_path, fresh=True)
    assert (tmp_path / INDEX).stat().st_ino != planted
    assert await ids(search, "signed lease") == ["lease"]


async def test_an_erased_text_is_erased_from_the_search_too(tmp_path: Path) -> None:
    await opened(tmp_path)
    erase_texts(tmp_path / "spool", {0}, tmp_path / "next")
    assert not (tmp_path / "next" / INDEX).exists()
    with Spool.open(tmp_path / "next") as spool:
        search = await TermSearch.open(spool, tmp_path / "next")
        assert sorted(await ids(search, "multi-agent lease Harbour")) == ["fire", "swapped"]
    assert b"lease" not in (tmp_path / "next" / INDEX).read_bytes()


async def test_words_that_stand_nearly_everywhere_tell_nothing_apart(tmp_path: Path) -> None:
    texts = [f"the number {n}" for n in range(1_500)]
    search = await opened(tmp_path, [(f"r{n}", text) for n, text in enumerate(texts)])
    for query, how in (("The number, 17?", "all-words"), ("the needle 17", "some-words")):
        assert [(hit.id, hit.how) for hit in await search.search(query)] == [("r17", how)]
    assert len(await search.search("the")) == 8


async def test_words_that_stand_in_many_records_are_followed_where_there_are_no_others(
    tmp_path: Path,
) -> None:
    words = ["sun", "moon"] * 1_100
    search = await opened(tmp_path, [(f"r{n}", f"{word} {n}") for n, word in enumerate(words)])
    hits = await search.search("sun moon")
    assert [hit.how for hit in hits] == ["some-words"] * 8


async def test_progress_is_told(tmp_path: Path) -> None:
    spool = await build_spool(
        open_source(["a"] + [f"text {n}" for n in range(3_000)]), tmp_path / "s"
    )
    told: list[int] = []
    await TermSearch.open(spool, tmp_path / "s", on_progress=told.append)
    assert told == [2_000, 3_001]


@pytest.mark.case("K5-7", "K5-13")
async def test_every_nasty_text_is_indexed_and_found_or_not_without_an_error(
    tmp_path: Path,
) -> None:
    source = open_source(nasty_corpus())
    spool = await build_spool(source, tmp_path / "spool", on_duplicate="suffix")
    search = await TermSearch.open(spool, tmp_path / "spool")
    for record in spool:
        if any(char.isalnum() for char in record.text[:200]):
            await search.search(record.text[:200])


@given(any_text())
def test_any_text_is_a_query_or_is_refused(query: str) -> None:
    try:
        read = read_query(query)
    except ValidationError:
        assert not any(char.isalnum() and char.isascii() for char in query)
    else:
        assert read.terms
        (read.every() + read.some()).encode("utf-8")


@given(st.lists(st.sampled_from(["a", '"', "NOT", "*", "\u9000\u6b3e", "-", "^", "\x00", ":"])))
async def test_no_mixture_of_operators_reaches_the_engine(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    search = await shared(tmp_path_factory)
    query = " ".join(pieces) + " x" + "".join(pieces)
    await search.search(query)


_shared: list[TermSearch] = []


async def shared(factory: pytest.TempPathFactory) -> TermSearch:
    """One index for all examples; files are all that it holds."""
    if not _shared:
        _shared.append(await opened(factory.mktemp("shared")))
    return _shared[0]
