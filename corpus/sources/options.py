"""How a source is to be read, as the caller told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from corpus.sources.base import OnBad
from executors.errors import ValidationError

__all__ = ["FORMATS", "Format", "ReadOptions"]

Format = Literal["csv", "json", "jsonl", "lines", "mail", "parquet", "sqlite", "text", "tsv"]
"""`lines`: each line of a file is a record; `text`: each file is one."""

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

    def refuse_columns(self, why: str) -> None:
        """Refuse named columns where there are none.

        Raises:
            ValidationError: an id or text column was named.
        """
        named = [name for name in (self.id, *self.text) if name is not None]
        if named:
            raise ValidationError(f"the column {named[0]!r} is named, but {why}")

    def refuse_query(self, why: str) -> None:
        """Refuse a query where nothing can be asked.

        Raises:
            ValidationError: a query was given.
        """
        if self.query is not None:
            raise ValidationError(
                f"the query {self.query[:60]!r} is given, but {why}",
                hint="queries are for SQLite files and open database connections",
            )
