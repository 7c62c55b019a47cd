"""The answers of a run, read in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from executors.ids import ContentKey
from executors.journal.blobs import read_blob
from executors.journal.filed_replies import thaw_reply
from executors.journal.lines import Answered, read_line
from executors.journal.reading import segment_files, whole_lines
from executors.journal.records import Paid
from executors.messages import ModelReply

__all__ = ["answers"]


def answers(directory: Path) -> Iterator[tuple[ContentKey, ModelReply, Paid]]:
    """Yield key, reply and cost of every answer of a run directory, clean or not.

    What is damaged, or was erased on request, is left out.
    """
    for segment in segment_files(directory / "journal"):
        for _, raw in whole_lines(segment.path):
            line = read_line(raw)
            if not isinstance(line, Answered):
                continue
            blob = None
            if line.blob is not None:
                blob = read_blob(directory / "blobs", line.blob)
                if blob is None:
                    continue
            try:
                reply = thaw_reply(line.fields, blob)
            except (LookupError, TypeError, ValueError):
                continue
            yield ContentKey(line.key.hex()), reply, line.paid
