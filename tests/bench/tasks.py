"""The labelled yes/no tasks of the accuracy table: texts, truth, and what a keyword search would say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["RARE", "TASKS", "Data", "Task", "load"]

DATA: Final = Path(__file__).resolve().parents[2] / ".data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question that labelled texts answer."""

    name: str
    files: tuple[str, ...]
    positive: str
    description: str
    """What a match looks like, for a first ranking."""
    keywords: str
    """What somebody would search for who has no labels: written down once, before any result."""
    share: float | None = None
    """Positives among the texts taken; None takes them as they come."""
    rest: frozenset[str] | None = None
    """Labels that are left out of the negatives, since another task's positives are drawn apart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """The texts of a task, in the seeded order of the file, and which of them match."""

    task: Task
    texts: tuple[str, ...]
    truth: NDArray[np.bool_]

    @property
    def keyword_hits(self) -> NDArray[np.bool_]:
        """Texts whose first 60 words hold a keyword."""
        find = re.compile(rf"\b(?:{self.task.keywords})\b", re.IGNORECASE).search
        return np.array([bool(find(" ".join(text.split()[:60]))) for text in self.texts])


TASKS: Final = (
    Task(
        name="spam",
        files=("spamassassin",),
        positive="spam",
        description="an unsolicited advertisement that wants to sell something",
        keywords="free|click|offer|money|guarantee\\w*|credit|buy|viagra|mortgage|unsubscribe",
    ),
    Task(
        name="forsale",
        files=("20news-test",),
        positive="misc.forsale",
        description="somebody offers an item for sale",
        keywords="sale|sell|selling|offer|offers|asking|obo|shipping|price",
        share=0.2,
        rest=frozenset({"sci.med"}),
    ),
    Task(
        name="medicine",
        files=("20news-test",),
        positive="sci.med",
        description="about medicine, health or a disease",
        keywords="doctors?|disease|patients?|medical|medicine|health|drugs?|treatment|symptoms?|pain",
        share=0.2,
        rest=frozenset({"misc.forsale"}),
    ),
    Task(
        name="sport",
        files=("bbc",),
        positive="sport",
        description="an article about sport",
        keywords="cup|match|league|coach|champions?|championship|olympic|rugby|football|tennis|striker",
    ),
    Task(
        name="business",
        files=("bbc",),
        positive="business",
        description="an article about business and the economy",
        keywords="shares?|profits?|economy|economic|bank|sales|firm|market|oil|dollar|bn",
    ),
    Task(
        name="positive review",
        files=("rotten-tomatoes",),
        positive="positive",
        description="the critic likes the film",
        keywords="best|great|good|funny|moving|brilliant|beautiful\\w*|enjoy\\w*|wonderful\\w*|delight\\w*",
    ),
    Task(
        name="acquisition",
        files=("r8-test",),
        positive="acq",
        description="one company buys another company or a stake in it",
        keywords="acquire\\w*|acquisition|merger|buy|bought|stake|takeover|tender|bid|purchase",
    ),
)
RARE: Final = Task(
    name="corn",
    files=("reuters-corn-test", "reuters-corn-train"),
    positive="corn",
    description="about corn or maize",
    keywords="corn|maize",
)


def load(task: Task, limit: int) -> Data:
    """Read up to `limit` texts of a task: the first ones of a file whose order is a seeded hash.

    Raises:
        FileNotFoundError: `make data` has not been run.
    """
    rows = [
        row for file in task.files for row in _rows(file) if row["label"] not in (task.rest or ())
    ]
    if task.share is not None:
        wanted = round(limit * task.share)
        matches = [row for row in rows if row["label"] == task.positive][:wanted]
        rows = matches + [row for row in rows if row["label"] != task.positive][: limit - wanted]
    rows = rows[:limit]
    return Data(
        task=task,
        texts=tuple(row["text"] for row in rows),
        truth=np.array([row["label"] == task.positive for row in rows]),
    )


def _rows(file: str) -> list[dict[str, str]]:
    with (DATA / f"{file}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
