"""A result on disk, so that `rlm show` can list the records of a count that ended long ago.

It is written beside the one that it replaces and takes its place as a whole: who reads the old one
reads it to its end, and a process that dies leaves one of the two.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from corpus.ledger import Ledger
from corpus.results import Ranking, Tally, assemble
from corpus.spool import Spool
from executors.errors import RunDirError
from executors.journal.json_lines import decode
from executors.private import written_durably

__all__ = ["drop_result", "load_ranking", "load_result", "load_tally", "save_ranking", "save_tally"]

_TALLY: Final = "tally.json"  # each is written last: without one of them there is no result
_RANKING: Final = "ranking.json"
_BATCH: Final = 1 << 16  # records at a time
# What reading raises where a file is not what was written.
_DAMAGED: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, TypeError, ValueError,
)  # fmt: skip


def save_tally(tally: Tally, directory: Path) -> None:
    """Write a tally in place of what the directory held; the spool stays where it is."""
    by_person = {str(ordinal): who for ordinal, who in tally.by_person.items()}
    with _replaced(directory) as new:
        tally.ledger.save(new)
        _save_array(new / "final.npy", tally.codes)
        texts = {"votes": tally.votes, "by_person": by_person, **_said(tally)}
        _save_texts(new / _TALLY, texts)


def save_ranking(ranking: Ranking, directory: Path) -> None:
    """Write a ranking in place of what the directory held."""
    with _replaced(directory) as new:
        _save_array(new / "scores.npy", ranking.scores)
        _save_texts(new / _RANKING, _said(ranking))


def load_tally(directory: Path, spool: Spool) -> Tally:
    """Read what `save_tally` wrote.

    Raises:
        FileNotFoundError: the directory holds no tally.
        RunDirError: it is about other records than those of the spool, or damaged.
    """
    directory = _settled(directory)
    with _reading(directory):
        texts = _load_texts(directory / _TALLY, spool)
        ledger = Ledger.load(directory)
        _require_size(ledger.size, spool)
        return assemble(
            spool,
            ledger,
            _load_array(directory / "final.npy", "u", spool),
            votes=texts["votes"],
            judge=texts["judge"],
            by_person={int(ordinal): who for ordinal, who in texts["by_person"].items()},
            notes=tuple(texts["notes"]),
        )


def load_ranking(directory: Path, spool: Spool) -> Ranking:
    """Read what `save_ranking` wrote.

    Raises:
        FileNotFoundError: the directory holds no ranking.
        RunDirError: it is about other records than those of the spool, or damaged.
    """
    directory = _settled(directory)
    with _reading(directory):
        texts = _load_texts(directory / _RANKING, spool)
        return Ranking(
            records=len(spool),
            judge=texts["judge"],
            notes=tuple(texts["notes"]),
            spool=spool,
            scores=_load_array(directory / "scores.npy", "f", spool),
        )


def load_result(directory: Path, spool: Spool) -> Tally | Ranking | None:
    """Read whichever result there is; None where there is none.

    Raises:
        RunDirError: it is about other records than those of the spool.
    """
    for load in (load_tally, load_ranking):
        with suppress(FileNotFoundError):
            return load(directory, spool)
    return None


def drop_result(directory: Path) -> None:
    """Delete what the directory holds, and what was about to take its place."""
    for path in (directory, *_beside(directory)):
        shutil.rmtree(path, ignore_errors=True)


def _said(result: Tally | Ranking) -> dict[str, object]:
    return {"of": _mark(result.spool), "judge": result.judge, "notes": result.notes}


def _mark(spool: Spool) -> str:
    """Return a hash over ids and texts of all records, in their order."""
    digest = blake2b(digest_size=16)
    for digests in (spool.id_digests, spool.digests):
        for start in range(0, len(digests), _BATCH):
            digest.update(digests[start : start + _BATCH].tobytes())
    return digest.hexdigest()


def _save_array(path: Path, array: NDArray[Any]) -> None:
    with written_durably(path) as file:
        np.save(file, array)


@contextmanager
def _reading(directory: Path) -> Generator[None]:
    """Tell damage as such; who goes on with the run writes the result anew."""
    try:
        yield
    except FileNotFoundError:
        raise
    except _DAMAGED as error:
        raise RunDirError(
            f"the result is damaged: {error}",
            where=str(directory),
            hint="go on with its run, which counts again what was judged: rlm resume RUN_DIR",
        ) from error


def _require_size(size: int, spool: Spool) -> None:
    if size != len(spool):
        raise ValueError(f"it is about {size} records, and the spool holds {len(spool)}")


def _load_array(path: Path, kind: str, spool: Spool) -> NDArray[Any]:
    """Return an array of one value a record, of a kind of numbers."""
    array: NDArray[Any] = np.load(path)
    if array.dtype.kind != kind or array.ndim != 1:
        raise ValueError(f"{path.name} holds {array.dtype} in {array.ndim} dimensions")
    _require_size(len(array), spool)
    return array


def _save_texts(path: Path, texts: Mapping[str, object]) -> None:
    with written_durably(path) as file:
        file.write(json.dumps(texts).encode("ascii"))


def _load_texts(path: Path, spool: Spool) -> dict[str, Any]:
    texts = cast("dict[str, Any]", decode(path.read_bytes()))
    if texts["of"] != _mark(spool):
        raise RunDirError(
            "the result is about other records than those that were read last",
            where=str(path.parent),
            hint="the session that read them did not end; go on with it: rlm resume RUN_DIR",
        )
    return texts


@contextmanager
def _replaced(directory: Path) -> Generator[Path]:
    """Yield a new directory that takes the place of this one at the end."""
    new, old = _beside(directory)
    settled = _settled(directory)
    if settled != directory:
        settled.rename(directory)
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    new.mkdir(mode=0o700)
    try:
        yield new
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    if directory.exists():
        directory.rename(old)
    new.rename(directory)
    shutil.rmtree(old, ignore_errors=True)


def _settled(directory: Path) -> Path:
    """Return where the result is, also where a process died before it took its place."""
    if not directory.exists():
        for path in _beside(directory):
            if (path / _TALLY).exists() or (path / _RANKING).exists():
                return path
    return directory


def _beside(directory: Path) -> tuple[Path, Path]:
    name = directory.name
    return directory.with_name(f"{name}.next"), directory.with_name(f"{name}.old")
