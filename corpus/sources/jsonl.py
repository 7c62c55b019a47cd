"""JSON, one row a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from corpus.sources.base import Complaints, SourceWarnings
from corpus.sources.json_rows import RowParser
from corpus.sources.lines import Decoder, line_encoding, numbered
from corpus.sources.origin import Origin

__all__ = ["jsonl_rows"]


def jsonl_rows(
    origin: Origin,
    encoding: str | None,
    warnings: SourceWarnings,
    complaints: Complaints,
    wanted: Sequence[str],
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield line numbers and rows; `wanted` are the columns whose spelling matters."""
    decoder = Decoder(line_encoding(encoding), warnings)
    parse = RowParser(origin.name, decoder, warnings, complaints, wanted).row
    sound = False
    for number, line in numbered(origin, encoding, warnings):
        # A file that holds nothing else than a broken line is no JSONL, or not the one meant.
        row = parse(line, number, torn=sound and not line.endswith(b"\n"))
        if row is not None:
            sound = True
            yield number, row
