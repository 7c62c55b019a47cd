"""Cells of the accuracy table: what one draw found, means over draws and tasks, and the text of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tests.bench.encoders import Rate
from tests.bench.tasks import RARE, Data

__all__ = ["Cell", "Draw", "Way", "means", "summed", "table"]

Way = Literal["random", "asked", "by score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How one taught head did on the texts that it was not taught."""

    count: int
    expected: float
    accuracy: float
    auc: float
    foretold_accuracy: float
    """By cross-validation, before any truth is known."""
    foretold_auc: float
    seconds: float
    """To teach the head and to judge all texts by it; encoding is apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A task, an encoder, a number of labels and how they were chosen: means over the draws."""

    task: str
    encoder: str
    way: Way
    labels: int
    texts: int
    true: int
    draws: int
    refused: int
    """Draws with too few labels of a class: the judge states no count then."""
    count: float
    count_error: float
    """Mean of |count - true| / true."""
    expected_error: float
    """The same for the sum of the probabilities."""
    accuracy: float
    accuracy_se: float
    auc: float
    auc_se: float
    foretold_accuracy: float
    foretold_auc: float
    seconds: float
    keyword_count: int
    keyword_accuracy: float
    encode_seconds: float
    """To encode all texts, at the rate measured on news at the start of the bench."""
    megabytes: float
    """Peak memory of encoding."""


def summed(
    found: Sequence[Draw],
    *,
    data: Data,
    encoder: str,
    way: Way,
    labels: int,
    draws: int,
    rate: Rate,
) -> Cell:
    """Put the draws of one cell together."""
    true = int(data.truth.sum())
    hits = data.keyword_hits
    return Cell(
        task=data.task.name,
        encoder=encoder,
        way=way,
        labels=labels,
        texts=len(data.truth),
        true=true,
        draws=draws,
        refused=draws - len(found),
        count=_mean(draw.count for draw in found),
        count_error=_mean(abs(draw.count - true) / true for draw in found),
        expected_error=_mean(abs(draw.expected - true) / true for draw in found),
        accuracy=_mean(draw.accuracy for draw in found),
        accuracy_se=_error(draw.accuracy for draw in found),
        auc=_mean(draw.auc for draw in found),
        auc_se=_error(draw.auc for draw in found),
        foretold_accuracy=_mean(draw.foretold_accuracy for draw in found),
        foretold_auc=_mean(draw.foretold_auc for draw in found),
        seconds=_mean(draw.seconds for draw in found),
        keyword_count=int(hits.sum()),
        keyword_accuracy=float((hits == data.truth).mean()),
        encode_seconds=len(data.truth) / rate.texts_a_second,
        megabytes=rate.megabytes,
    )


def table(found: list[Cell]) -> str:
    lines = [
        (
            f"{'task':16} {'encoder':12} {'labels':>6} {'chosen':8} {'true':>5} {'count':>6} {'err':>5} "
            f"{'sum p':>5} {'accuracy':>13} {'AUC':>13} {'CV acc':>6} {'CV AUC':>6} {'head ms':>7} {'encode s':>8} {'MB':>4} {'refused':>7}"
            "   keywords: count, accuracy"
        )
    ]
    lines += [
        (
            f"{cell.task:16} {cell.encoder:12} {cell.labels:6} {cell.way:8} {cell.true:5} "
            f"{cell.count:6.0f} {cell.count_error:5.2f} {cell.expected_error:5.2f} "
            f"{cell.accuracy:6.3f} ±{cell.accuracy_se:5.3f} {cell.auc:6.3f} ±{cell.auc_se:5.3f} "
            f"{cell.foretold_accuracy:6.3f} {cell.foretold_auc:6.3f} {1000 * cell.seconds:7.0f} {cell.encode_seconds:8.0f} {cell.megabytes:4.0f} "
            f"{cell.refused:7}   {cell.keyword_count:5} {cell.keyword_accuracy:.3f}"
        )
        for cell in [*found, *means(found)]
    ]
    return "\n".join(lines)


def means(found: list[Cell]) -> list[Cell]:
    """Average over the seven tasks; the rare class stands apart. Errors of the tasks add as squares."""
    groups: dict[tuple[str, Way, int], list[Cell]] = {}
    for cell in found:
        if cell.task != RARE.name:
            groups.setdefault((cell.encoder, cell.way, cell.labels), []).append(cell)
    return [_mean_cell(group) for group in groups.values()]


def _mean_cell(group: list[Cell]) -> Cell:
    def squares(errors: Iterable[float]) -> float:
        return float(np.sqrt(sum(error**2 for error in errors)) / len(group))

    first = group[0]
    return Cell(
        task=f"mean of {len(group)}",
        encoder=first.encoder,
        way=first.way,
        labels=first.labels,
        texts=sum(cell.texts for cell in group),
        true=sum(cell.true for cell in group),
        draws=first.draws,
        refused=sum(cell.refused for cell in group),
        count=sum(cell.count for cell in group),
        count_error=_mean(cell.count_error for cell in group),
        expected_error=_mean(cell.expected_error for cell in group),
        accuracy=_mean(cell.accuracy for cell in group),
        accuracy_se=squares(cell.accuracy_se for cell in group),
        auc=_mean(cell.auc for cell in group),
        auc_se=squares(cell.auc_se for cell in group),
        foretold_accuracy=_mean(cell.foretold_accuracy for cell in group),
        foretold_auc=_mean(cell.foretold_auc for cell in group),
        seconds=_mean(cell.seconds for cell in group),
        keyword_count=sum(cell.keyword_count for cell in group),
        keyword_accuracy=_mean(cell.keyword_accuracy for cell in group),
        encode_seconds=sum(cell.encode_seconds for cell in group),
        megabytes=first.megabytes,
    )


def _mean(figures: Iterable[float]) -> float:
    listed = list(figures)
    return float(np.mean(listed)) if listed else float("nan")


def _error(figures: Iterable[float]) -> float:
    listed = list(figures)
    return float(np.std(listed, ddof=1) / np.sqrt(len(listed))) if len(listed) > 1 else float("nan")
