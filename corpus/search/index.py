"""The words of a spool in one SQLite file: derived, private, rebuilt whenever it does not fit.

It holds words and where they stand, no texts; but words tell about their texts, so the file is the
owner's alone and belongs beside what it was built from: whoever erases that erases this.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np
from anyio import to_thread

from corpus.repeats import Ordinals
from corpus.search.drafts import drafted
from corpus.search.words import prepared
from corpus.spool import Spool
from executors.errors import ConfigError, RunDirError
from executors.threads import to_its_end

__all__ = ["INDEX", "ensure_index", "listed", "open_index", "order_key"]

INDEX: Final = "search.sqlite"
_VERSION: Final = "1"
"""Raised whenever texts are prepared in another way."""
_SLICE: Final = 2_000
_HASH_BYTES: Final = 16 << 20  # of words that are gathered before they are written
# A word in a fifth of the records and in many of them says little and costs much to follow.
_SHARE: Final = 0.2
_MANY: Final = 1_000
_TOKENIZER: Final = "unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
_SCHEMA: Final = f"""
    CREATE TABLE about (key TEXT NOT NULL);
    CREATE TABLE common (word TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize="{_TOKENIZER}");
"""


async def ensure_index(
    spool: Spool,
    directory: Path,
    *,
    fresh: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Path:
    """Return the index of a spool, building it in the folder unless it stands there already.

    The folder is made with mode 0700. A build that fails or is cancelled leaves what was there.

    Args:
        fresh: build it whatever stands there: no file from elsewhere is opened.
        on_progress: is told how many records were read so far.

    Raises:
        RunDirError: it cannot be written.
        ConfigError: this Python's SQLite has no full-text search.
    """
    path = directory / INDEX
    key = await to_thread.run_sync(order_key, spool)
    if not fresh and await to_thread.run_sync(_stands, path, key):
        return path
    try:
        async with drafted(path) as draft:
            file = await to_its_end(partial(_begin, draft))
            try:
                await _fill(file, spool, on_progress)
                await to_its_end(partial(_finish, file, key, len(spool)))
            finally:
                file.close()
    except (OSError, sqlite3.Error) as error:
        raise RunDirError(
            f"the search index cannot be written: {error}",
            where=str(path),
            hint="make room or choose another folder; it is derived and built anew when asked for",
        ) from error
    return path


def open_index(path: Path) -> sqlite3.Connection:
    """Open an index for reading, for one search: that makes it safe with threads."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def order_key(spool: Spool) -> str:
    """Identify what is searched: texts in their order, since ordinals are what is found."""
    digest = blake2b(_VERSION.encode(), digest_size=16)
    digest.update(np.ascontiguousarray(spool.digests).data)
    return digest.hexdigest()


def listed(spool: Spool) -> Ordinals:
    """Return the records that are searched: of those with the same text the first, and no blank ones."""
    everyone = np.arange(len(spool), dtype=np.uint32)
    chosen: Ordinals = everyone[(spool.representative == everyone) & ~spool.is_empty]
    return chosen


def _stands(path: Path, key: str) -> bool:
    if not path.exists():
        return False
    with suppress(sqlite3.Error), closing(open_index(path)) as file:
        return bool(file.execute("SELECT key FROM about").fetchall() == [(key,)])
    return False


def _begin(draft: Path) -> sqlite3.Connection:
    # The thread differs from slice to slice, one at a time.
    file = sqlite3.connect(draft, check_same_thread=False)
    try:
        # A draft that is lost is begun anew, so nothing has to survive a crash.
        file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _SCHEMA)
        file.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (_HASH_BYTES,))
    except sqlite3.OperationalError as error:
        file.close()
        if "fts5" not in str(error):
            raise
        raise ConfigError(
            f"this Python's SQLite {sqlite3.sqlite_version} has no full-text search: {error}",
            hint="use a Python whose SQLite was built with FTS5, or search by meaning",
        ) from error
    return file


async def _fill(
    file: sqlite3.Connection, spool: Spool, on_progress: Callable[[int], None] | None
) -> None:
    ordinals = listed(spool).tolist()
    for start in range(0, len(ordinals), _SLICE):
        await to_its_end(partial(_insert, file, spool, ordinals[start : start + _SLICE]))
        if on_progress is not None:
            on_progress(min(start + _SLICE, len(ordinals)))


def _insert(file: sqlite3.Connection, spool: Spool, ordinals: Sequence[int]) -> None:
    for parts in spool.parts(ordinals):
        rows = [(part.ordinal, prepared(part.text)) for part in parts]
        file.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)


def _finish(file: sqlite3.Connection, key: str, records: int) -> None:
    file.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab('main', 'words', 'row')")
    file.execute(
        "INSERT INTO common SELECT term FROM seen WHERE doc > ?",
        (max(_MANY, int(_SHARE * records)),),
    )
    file.execute("INSERT INTO about (key) VALUES (?)", (key,))
    file.commit()
