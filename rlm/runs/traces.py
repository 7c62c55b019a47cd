"""Where words of a text stand in what was written down about it: answers, failures, events."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from executors.ids import ContentKey
from executors.journal.blobs import read_blob
from executors.journal.json_lines import decode
from executors.journal.lines import Answered, Done, Unanswered, Voided, read_line
from executors.journal.reading import segment_files, whole_lines
from executors.private import written_durably

__all__ = ["ERASED", "Traces", "calls_that_tell", "rewrite_log"]

ERASED: Final = "erased on request"
_PIECE: Final = 16  # characters in a row that give a text away
_SHORTEST: Final = 8  # a shorter text is found everywhere, and tells nothing there
_ESCAPED: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrtbf"\\/]))')
# Events that hold numbers, keys and ids alone: nearly all of a log.
_DRY: Final = tuple(
    f'{{"kind":"{kind}"'.encode()
    for kind in ("call_finished", "call_started", "run_started", "scan_started", "window_finished")
)


class Traces:
    """Says whether words give a text away: by some characters in a row, spaces and case aside."""

    def __init__(self, text: str) -> None:
        whole = _folded(text)
        self._size = min(_PIECE, len(whole))
        pieces = range(len(whole) - self._size + 1) if self._size >= _SHORTEST else range(0)
        self._pieces = {hash(whole[at : at + self._size]) for at in pieces}

    def __call__(self, words: str) -> bool:
        """Return whether they do; also where they are escaped as in JSON."""
        size, pieces = self._size, self._pieces
        if not pieces:
            return False
        folded = _folded(words)
        return any(hash(folded[at : at + size]) in pieces for at in range(len(folded) - size + 1))


def calls_that_tell(directory: Path, tells: Callable[[str], bool]) -> set[ContentKey]:
    """Return the keys of the calls whose answer or failure gives a text away, and of such tools."""
    found: set[ContentKey] = set()
    for segment in segment_files(directory / "journal"):
        for _, raw in whole_lines(segment.path):
            if raw[2:3] not in (b"a", b"f", b"v", b"d"):
                continue
            line = read_line(raw)
            if not isinstance(line, Answered | Done | Unanswered | Voided):
                continue
            words = raw.decode("utf-8", "replace")
            if isinstance(line, Answered | Done) and line.blob is not None:
                blob = read_blob(directory / "blobs", line.blob) or b""
                words += blob.decode("utf-8", "replace")
            if tells(words):
                found.add(ContentKey(line.key.hex()))
    return found


def rewrite_log(path: Path, tells: Callable[[str], bool], *, last: bytes) -> int:
    """Erase from a log what gives a text away, and all starts of replies that nobody could read.

    The log is replaced as a whole.

    Args:
        last: a line that is added at the end.

    Returns:
        How many events were changed.
    """
    changed = 0
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with path.open("rb") as lines, written_durably(new) as file:
        for line in lines:
            left = line if line.startswith(_DRY) else _left(line, tells)
            changed += left != line
            file.write(left)
        file.write(last)
    new.replace(path)
    return changed


def _left(line: bytes, tells: Callable[[str], bool]) -> bytes:
    try:
        fields = decode(line)
    except ValueError:  # nobody can read it, so nobody needs it
        return b""
    if not isinstance(fields, dict):
        return b""
    known = cast("dict[str, object]", fields)
    kept = {name: _kept(value, tells) for name, value in known.items()}
    if known.get("snippet"):
        kept["snippet"] = None
    if kept == known:
        return line
    return json.dumps(kept, separators=(",", ":")).encode("ascii") + b"\n"


def _kept(value: object, tells: Callable[[str], bool]) -> object:
    match value:
        case str():
            return ERASED if tells(value) else value
        case list():
            return [_kept(item, tells) for item in cast("list[object]", value)]
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _kept(item, tells) for name, item in fields.items()}
        case _:
            return value


def _folded(words: str) -> str:
    if "\\" in words:
        words = _ESCAPED.sub(_unescaped, words)
    return " ".join(words.split()).casefold()


def _unescaped(found: re.Match[str]) -> str:
    code, sign = found.groups()
    if code is not None:
        return chr(int(code, 16))
    return sign if sign in '"\\/' else " "
