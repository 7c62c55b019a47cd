"""Plain lines: each line that is not blank is a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corpus.sources.base import SourceWarnings
from corpus.sources.lines import text_lines
from corpus.sources.origin import Origin

__all__ = ["line_rows"]


def line_rows(
    origin: Origin, encoding: str | None, warnings: SourceWarnings
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield line numbers and rows with the one column `text`."""
    for number, line in text_lines(origin, encoding, warnings):
        text = line.removesuffix("\n").removesuffix("\r")
        if text:
            yield number, {"text": text}
        else:
            warnings.add("blank-lines", f"{origin.name}:{number}")
