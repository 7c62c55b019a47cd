"""A cache of vectors by content, one SQLite file in the user's cache directory.

A key is the hash of the text as the encoder reads it, with the encoder's name and version; no text is
stored, but a vector tells about its text, so the file is the user's alone. It may be deleted at any time
and repairs itself: a damaged row is a miss, a damaged file is set aside and begun anew, a locked or
unwritable one is done without. Connections last for one call, which makes them safe with threads and
forks and costs less than a millisecond.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final
from zlib import crc32

import numpy as np

from executors.errors import OutputError
from executors.models.encoders.base import Encoder, Vectors, first_words

__all__ = ["CacheUse", "CachedEncoder", "default_cache_path", "forget_vectors"]

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS vectors (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key BLOB NOT NULL UNIQUE,
        vector BLOB NOT NULL
    )
"""
_AT_ONCE: Final = 500  # keys a query; SQLite takes at least 999
_WAIT_SECONDS: Final = 5.0
_MAX_VECTORS: Final = 1_000_000
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def default_cache_path() -> Path:
    """Return `rlm/embeddings.sqlite` in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "rlm" / "embeddings.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheUse:
    """What an encoder was asked for so far, identical texts of a call counted once."""

    found: int
    """Vectors that the cache had."""
    made: int
    """Vectors that the encoder had to make."""


def forget_vectors(
    path: Path, texts: Sequence[str], encoders: Iterable[tuple[str, str, int]]
) -> int:
    """Erase the vectors of some texts, so that no byte of them is left in the file; return how many.

    Args:
        encoders: name, version and words that are read, of each encoder that may have made them.

    Raises:
        OutputError: the file cannot be changed.
    """
    if not path.exists():
        return 0
    keys = {
        _key(_salt(name, version), first_words(text, words))
        for name, version, words in encoders
        for text in texts
    }
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as file:
            file.execute("PRAGMA secure_delete = ON")
            with file:
                rows = [(key,) for key in keys]
                gone = file.executemany("DELETE FROM vectors WHERE key = ?", rows).rowcount
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # or the log would hold them on
            return max(0, gone)
    except sqlite3.DatabaseError as error:
        raise OutputError(
            f"the cache of embeddings cannot be changed: {error}",
            where=str(path),
            hint="close what uses it and ask again, or delete the file: it is made anew",
        ) from error


class CachedEncoder:
    """An encoder that keeps its vectors. With `path` None it keeps nothing and touches no file."""

    def __init__(
        self, encoder: Encoder, path: Path | None, *, max_vectors: int = _MAX_VECTORS
    ) -> None:
        """Wrap an encoder.

        Args:
            max_vectors: how many the file may hold, about 1.7 KB each; the oldest make room.
        """
        self._encoder = encoder
        self._store = None if path is None else _Store(path, max_vectors)
        self._salt = _salt(encoder.name, encoder.version)
        self._counting = threading.Lock()
        self._found = self._made = 0

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def version(self) -> str:
        return self._encoder.version

    @property
    def dimensions(self) -> int:
        return self._encoder.dimensions

    @property
    def max_words(self) -> int:
        return self._encoder.max_words

    @property
    def use(self) -> CacheUse:
        """What was found and what was made, so far."""
        with self._counting:
            return CacheUse(found=self._found, made=self._made)

    def encode(self, texts: Sequence[str]) -> Vectors:
        cuts = [first_words(text, self.max_words) for text in texts]
        keys = [_key(self._salt, cut) for cut in cuts]
        known = self._store.read(set(keys), self.dimensions) if self._store else {}
        missing = {key: cut for key, cut in zip(keys, cuts, strict=True) if key not in known}
        found = len(known)
        if missing:
            made = self._encoder.encode(list(missing.values()))
            fresh = dict(zip(missing, made, strict=True))
            known = {**known, **fresh}
            if self._store:
                self._store.write(fresh)
        with self._counting:
            self._found += found
            self._made += len(missing)
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            vectors[row] = known[key]
        return vectors

    def close(self) -> None:
        self._encoder.close()


def _salt(name: str, version: str) -> bytes:
    return f"{name}\0{version}".encode()


def _key(salt: bytes, cut: str) -> bytes:
    digest = blake2b(salt, digest_size=16)
    digest.update(b"\0" + cut.encode("utf-8"))
    return digest.digest()


class _Store:
    """The file. Every trouble with it means: not known, not kept."""

    def __init__(self, path: Path, max_vectors: int) -> None:
        self._path = path
        self._max_vectors = max_vectors
        self._repairing = threading.Lock()

    def read(self, keys: set[bytes], dimensions: int) -> dict[bytes, Vectors]:
        """Return the vectors that are there and whole."""
        found: dict[bytes, Vectors] = {}
        if not self._path.exists():
            return found
        wanted = list(keys)
        with self._forgiving(), closing(self._open()) as file:
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = file.execute(
                    f"SELECT key, vector FROM vectors WHERE key IN ({marks})",  # noqa: S608
                    some,
                )
                for key, blob in rows:
                    vector = _unpacked(blob, dimensions)
                    if vector is not None:
                        found[key] = vector
        return found

    def write(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors; what stands there already is replaced, for it may be the damaged one."""
        rows = [(key, _packed(vector)) for key, vector in vectors.items()]
        with self._forgiving(), closing(self._open()) as file, file:
            file.executemany("INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", rows)
            # Numbers grow with time and have few gaps, so the newest one less the cap is the cut.
            file.execute(
                "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?",
                (self._max_vectors,),
            )

    def _open(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)  # SQLite gives its side files the mode of the file
        file = sqlite3.connect(self._path, timeout=_WAIT_SECONDS)
        try:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute(_SCHEMA)
        except sqlite3.Error:
            file.close()
            raise
        return file

    @contextmanager
    def _forgiving(self) -> Generator[None]:
        """Do without the file when it is locked, full or unwritable; begin anew when it is damaged."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                self._set_aside()
        except OSError:
            pass

    def _set_aside(self) -> None:
        """Move the damaged file out of the way; it may be somebody's who gave the wrong path."""
        with self._repairing, suppress(OSError):
            self._path.replace(self._path.with_name(self._path.name + ".damaged"))
            for side in ("-wal", "-shm"):
                self._path.with_name(self._path.name + side).unlink(missing_ok=True)


def _packed(vector: Vectors) -> bytes:
    raw = vector.astype("<f4").tobytes()
    return raw + crc32(raw).to_bytes(4, "little")


def _unpacked(blob: object, dimensions: int) -> Vectors | None:
    """Return the vector, or None when the blob is not what was written."""
    if not isinstance(blob, bytes) or len(blob) != dimensions * 4 + 4:
        return None
    raw, check = blob[:-4], int.from_bytes(blob[-4:], "little")
    return np.frombuffer(raw, dtype="<f4").astype(np.float32) if crc32(raw) == check else None
