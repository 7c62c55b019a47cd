"""A recorded run as a journal: every call is answered from it, and none by a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from executors.errors import ModelError, ReplayMiss, RunDirError
from executors.ids import ContentKey
from executors.journal.failures import thaw
from executors.journal.filed_replies import reply_of
from executors.journal.filed_tools import tool_of
from executors.journal.lines import Answered, Begun, Done, Unanswered, read_line
from executors.journal.reading import segment_files, whole_lines
from executors.journal.records import Filed, Paid, ToolBegun, ToolDone
from executors.messages import ModelReply
from executors.replies import JsonValue

__all__ = ["Replay"]


@dataclass(frozen=True, slots=True)
class _Place:
    segment: Path
    begin: int
    length: int

    def read(self) -> bytes:
        """Return the line that stands here."""
        with self.segment.open("rb", buffering=0) as file:
            file.seek(self.begin)
            return file.read(self.length)


class Replay:
    """Reads the recorded run once, when it is made; writes nothing there and takes no lock.

    The last outcome of a call is what is recorded: its answer, clean or not, voided or not, or its
    failure. One that was cancelled has none. Tools gave what is recorded, and none is run. Notes
    are left out, so that all is judged anew from the answers.

    Args:
        directory: the run directory.

    Raises:
        RunDirError: it holds no journal that can be read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places: dict[bytes, _Place] = {}
        self._tools: dict[bytes, _Place] = {}
        try:
            files = segment_files(directory / "journal")
            for file in files:
                self._read(file.path)
        except OSError as error:
            raise self._refusal(f"its journal cannot be read: {error.strerror or error}") from error
        if not files:
            raise self._refusal("no call of it was recorded")

    def find(self, key: ContentKey) -> Filed | ModelError:
        place = self._places.get(bytes.fromhex(key))
        found = None if place is None else self._recorded(place)
        if found is None:
            raise ReplayMiss(key=key, where=str(self._directory))
        return found

    def intent(self, key: ContentKey, *, tokens: int, usd: Decimal | None) -> None:
        raise ReplayMiss(key=key, where=str(self._directory))

    async def answer(self, key: ContentKey, reply: ModelReply, paid: Paid) -> None:
        pass

    def failed(self, key: ContentKey, error: ModelError | None, paid: Paid) -> None:
        pass

    def void(self, key: ContentKey, why: str) -> None:
        pass

    def note(
        self,
        scope: ContentKey,
        keys: bytes,
        values: Sequence[JsonValue],
        *,
        call: ContentKey | None = None,
    ) -> None:
        pass

    def notes(self, scope: ContentKey) -> Iterator[tuple[bytes, JsonValue]]:
        return iter(())

    def tool_found(self, key: ContentKey) -> ToolDone | ToolBegun:
        place = self._tools.get(bytes.fromhex(key))
        if place is None:
            raise ReplayMiss(key=key, where=str(self._directory))
        return tool_of(key, place.read(), self._directory / "blobs")

    def tool_begun(self, key: ContentKey, *, name: str) -> None:
        raise ReplayMiss(key=key, where=str(self._directory))

    async def tool_done(self, key: ContentKey, *, result: str, failed: bool) -> None:
        pass

    def _read(self, segment: Path) -> None:
        for begin, raw in whole_lines(segment):
            if raw[2:3] not in b"aftd":  # most other lines are notes, and need no reading
                continue
            line = read_line(raw)
            if isinstance(line, Answered) or (
                isinstance(line, Unanswered) and line.error is not None
            ):
                self._places[line.key] = _Place(segment, begin, len(raw))
            elif isinstance(line, Begun | Done):
                self._tools[line.key] = _Place(segment, begin, len(raw))

    def _recorded(self, place: _Place) -> Filed | ModelError | None:
        match read_line(place.read()):
            case Answered() as line:
                reply = reply_of(line, self._directory / "blobs")
                return None if reply is None else Filed(reply=reply, usd=line.paid.usd)
            case Unanswered() as line:
                try:
                    return thaw(line.error)
                except (LookupError, TypeError):
                    return None
            case _:
                return None

    def _refusal(self, why: str) -> RunDirError:
        return RunDirError(
            f"the run {str(self._directory)!r} cannot be replayed",
            where=why,
            hint="name the directory of a run that asked a model; see: rlm runs list",
        )
