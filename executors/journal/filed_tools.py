"""What a line says of a tool's run; what is long stands in a blob."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from executors.ids import ContentKey
from executors.journal.blobs import read_blob
from executors.journal.json_lines import decode, encode
from executors.journal.lines import Done, Fields, read_line
from executors.journal.records import ToolBegun, ToolDone

__all__ = ["long_done", "tool_of"]


def long_done(line: bytes, blob: str) -> bytes:
    """Return the line of a run whose result stands in a blob."""
    fields = cast("Fields", decode(line))
    short = {name: value for name, value in fields.items() if name != "x"}
    return encode({**short, "b": blob})


def tool_of(key: ContentKey, raw: bytes, blobs: Path) -> ToolDone | ToolBegun:
    """Return what a line says of a run.

    Where a result cannot be read any more the tool has still run: it is one that began.
    """
    line = read_line(raw)
    if isinstance(line, Done) and line.blob is not None:
        blob = read_blob(blobs, line.blob)
        line = None if blob is None else read_line(blob)
    match line:
        case Done(found, failed, str(result)) if found.hex() == key:
            return ToolDone(result=result, failed=failed)
        case _:
            return ToolBegun()
