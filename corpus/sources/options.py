"""How a source is to be read, as the caller told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from corpus.sources.base import OnBad

__all__ = ["FORMATS", "Format", "ReadOptions"]

Format = Literal["jsonl", "csv", "tsv", "lines"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the caller told; None and () are detected."""

    id: str | None = None
    text: tuple[str, ...] = ()
    query: str | None = None
    format: Format | None = None
    encoding: str | None = None
    on_bad: OnBad = "refuse"
