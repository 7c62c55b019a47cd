"""The cache of vectors: hits, keys, damage, and the promise to touch no file when it is off."""

import sqlite3
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors.models.encoders.base import Encoder, Vectors
from executors.models.encoders.cache import CachedEncoder, CacheUse, default_cache_path


class Counting:
    """An encoder whose vectors come from the text alone, and that remembers what it was asked."""

    dimensions = 4
    max_words = 3

    def __init__(self, name: str = "counting", version: str = "1") -> None:
        self.name = name
        self.version = version
        self.asked: list[str] = []
        self.closed = False

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = [np.frombuffer(text.encode().ljust(4, b".")[:4], dtype=np.uint8) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 4)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "embeddings.sqlite"


def same(cached: Encoder, texts: list[str]) -> bool:
    return np.array_equal(cached.encode(texts), Counting().encode(texts))


def test_a_second_question_over_the_same_texts_encodes_nothing(path: Path) -> None:
    texts = [f"t{number}" for number in range(1200)]
    assert same(CachedEncoder(Counting(), path), texts)
    inner = Counting()
    cached = CachedEncoder(inner, path)
    assert same(cached, texts)
    assert inner.asked == []
    assert cached.use == CacheUse(found=1200, made=0)


def test_only_what_is_missing_is_encoded_and_each_text_once(path: Path) -> None:
    CachedEncoder(Counting(), path).encode(["a", "b"])
    inner = Counting()
    cached = CachedEncoder(inner, path)
    assert same(cached, ["c", "a", "c", "b", "a"])
    assert inner.asked == ["c"]
    assert cached.use == CacheUse(found=2, made=1)


def test_texts_that_are_cut_to_the_same_words_share_a_vector(path: Path) -> None:
    inner = Counting()
    cached = CachedEncoder(inner, path)
    cached.encode(["one two three four"])
    cached.encode(["one  two\nthree five"])
    assert inner.asked == ["one two three"]


@pytest.mark.parametrize("other", [Counting(name="x"), Counting(version="2")])
def test_encoders_of_another_name_or_version_share_nothing(path: Path, other: Counting) -> None:
    CachedEncoder(Counting(), path).encode(["a"])
    CachedEncoder(other, path).encode(["a"])
    assert other.asked == ["a"]


@pytest.mark.case("K14-20")
def test_without_a_path_no_file_is_touched(nobodys_home: Path) -> None:
    cached = CachedEncoder(Counting(), None)
    assert same(cached, ["a", "a", "b"])
    assert cached.use == CacheUse(found=0, made=2)
    assert not nobodys_home.exists()


def test_the_file_is_the_users_alone(path: Path) -> None:
    CachedEncoder(Counting(), path).encode(["a"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_text_is_stored(path: Path) -> None:
    CachedEncoder(Counting(), path).encode(["confidential"])
    assert all(b"confidential" not in file.read_bytes() for file in path.parent.iterdir())


def test_the_cache_lies_in_the_users_cache_directory(
    nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_cache_path() == nobodys_home / "cache/rlm/embeddings.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/invalid")
    assert default_cache_path() == nobodys_home / ".cache/rlm/embeddings.sqlite"


def test_the_oldest_make_room(path: Path) -> None:
    cached = CachedEncoder(Counting(), path, max_vectors=10)
    for start in range(0, 30, 5):
        cached.encode([f"t{number}" for number in range(start, start + 5)])
    inner = Counting()
    CachedEncoder(inner, path).encode([f"t{number}" for number in range(30)])
    assert len(inner.asked) == 20
    assert "t29" not in inner.asked


def test_many_threads_may_use_one_cache(path: Path) -> None:
    cached = CachedEncoder(Counting(), path)
    texts = [f"t{number}" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        parts = [texts[start:] for start in range(0, 160, 10)]
        assert all(pool.map(same, [cached] * len(parts), parts))


def test_an_encoder_is_closed_through_its_cache(path: Path) -> None:
    inner = Counting()
    cached = CachedEncoder(inner, path)
    cached.close()
    assert inner.closed
    assert (cached.name, cached.version) == ("counting", "1")
    assert (cached.dimensions, cached.max_words) == (4, 3)


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("garbage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 500])
def test_a_damaged_file_is_set_aside_and_begun_anew(path: Path, garbage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(garbage)
    assert same(CachedEncoder(Counting(), path), ["a", "b"])
    CachedEncoder(Counting(), path).encode(["a", "b"])
    inner = Counting()
    assert same(CachedEncoder(inner, path), ["a", "b"])
    assert inner.asked == []
    if garbage:
        assert path.with_name("embeddings.sqlite.damaged").read_bytes() == garbage


def test_a_damaged_page_is_survived(path: Path) -> None:
    texts = [f"t{number}" for number in range(2000)]
    CachedEncoder(Counting(), path).encode(texts)
    whole = bytearray(path.read_bytes())
    whole[4096 : len(whole) // 2] = b"\xa5" * (len(whole) // 2 - 4096)
    path.write_bytes(whole)
    for _ in range(2):
        assert same(CachedEncoder(Counting(), path), texts)


def test_a_damaged_row_is_made_again(path: Path) -> None:
    CachedEncoder(Counting(), path).encode(["a", "b", "c"])
    with sqlite3.connect(path) as file:
        file.execute("UPDATE vectors SET vector = zeroblob(20) WHERE number = 1")
        file.execute("UPDATE vectors SET vector = 'text' WHERE number = 2")
    file.close()
    inner = Counting()
    assert same(CachedEncoder(inner, path), ["a", "b", "c"])
    assert sorted(inner.asked) == ["a", "b"]
    assert same(CachedEncoder(Counting(), path), ["a", "b", "c"])
    last = Counting()
    CachedEncoder(last, path).encode(["a", "b", "c"])
    assert last.asked == []


def test_a_file_of_another_program_is_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE vectors (theirs TEXT)")
        file.execute("INSERT INTO vectors VALUES ('kept')")
    assert same(CachedEncoder(Counting(), path), ["a"])
    assert file.execute("SELECT * FROM vectors").fetchall() == [("kept",)]
    file.close()


def test_a_locked_file_is_done_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executors.models.encoders.cache._WAIT_SECONDS", 0.01)
    CachedEncoder(Counting(), path).encode(["a"])
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert same(CachedEncoder(Counting(), path), ["a", "b"])
    other.close()
    assert not path.with_name("embeddings.sqlite.damaged").exists()


def test_a_place_where_no_file_can_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert same(CachedEncoder(Counting(), tmp_path / "file" / "embeddings.sqlite"), ["a"])
    (tmp_path / "folder.sqlite").mkdir()
    assert same(CachedEncoder(Counting(), tmp_path / "folder.sqlite"), ["a"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(max_size=8), max_size=12), max_size=4))
def test_the_cache_never_changes_a_vector(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]]
) -> None:
    cached = CachedEncoder(Counting(), tmp_path_factory.mktemp("cache") / "e.sqlite")
    plain = CachedEncoder(Counting(), None)
    for batch in batches:
        assert np.array_equal(cached.encode(batch), plain.encode(batch))
