"""The head of a run is taught once: later sessions take it over while its lesson is the same."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rlm import Completed, count, resume
from rlm.runs.manifest import Manifest

pytestmark = pytest.mark.anyio

RECORDS = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(40)]
LABELS = {f"r{n}": "yes" if n % 3 == 0 else "no" for n in range(30)}


class Letters:
    """An encoder that sees letters; `noise` is what another processor would do."""

    name, version, dimensions, max_words = "letters", "1", 26, 60

    def __init__(self, noise: float = 0.0) -> None:
        self._noise = noise

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[text.count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts]
        vectors: NDArray[np.float32] = np.array(rows, dtype=np.float32) + np.float32(self._noise)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def close(self) -> None: ...


async def taught(run: Path, **changes: object) -> str:
    given = {"records": RECORDS, "labels": LABELS, "encoder": Letters(), **changes}
    outcome = await count(
        "fire?",
        given["records"],  # type: ignore[arg-type]
        labels=given["labels"],  # type: ignore[arg-type]
        encoder=given["encoder"],  # type: ignore[arg-type]
        cache=False,
        run=run,
    )
    assert isinstance(outcome, Completed)
    return (run / "head.json").read_text(encoding="utf-8")


async def test_a_session_on_another_processor_takes_the_head_over(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = await taught(run)
    await resume(run, encoder=Letters(noise=1e-4))
    assert (run / "head.json").read_text(encoding="utf-8") == first
    assert await taught(run, records=RECORDS[::-1], encoder=Letters(noise=1e-4)) == first
    assert await taught(tmp_path / "other", encoder=Letters(noise=1e-4)) != first


async def test_another_lesson_teaches_another_head(tmp_path: Path) -> None:
    edited = [("r0", "a large fire"), *RECORDS[1:]]
    others: list[dict[str, object]] = [
        {"labels": {**LABELS, "r1": "yes"}},
        {"records": edited},
        {"labels": {**LABELS, "r31": "no"}},
    ]
    for n, change in enumerate(others):
        run = tmp_path / str(n)
        assert await taught(run) != await taught(run, **change)


async def test_a_head_that_is_damaged_or_came_from_elsewhere_is_not_taken_over(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    first = await taught(run)
    head = json.loads(first)
    head["bias"] = [value + 1.0 for value in head["bias"]]
    forged = json.dumps(head)
    (run / "head.json").write_text("{", encoding="utf-8")
    assert await taught(run) == first
    Manifest.load(run).model_copy(update={"mark": "0" * 32}).save(run)
    (run / "head.json").write_text(forged, encoding="utf-8")
    assert await taught(run) == first
