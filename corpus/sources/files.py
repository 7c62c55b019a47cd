"""Each file is a record, its path below the folder is its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from corpus.records import Record
from corpus.sources.base import SourceInfo, SourceWarnings
from corpus.sources.formats import looks_binary
from corpus.sources.intake import encodable
from corpus.sources.lines import decode_whole
from corpus.sources.options import ReadOptions
from corpus.sources.origin import Origin
from executors.errors import SourceError

__all__ = ["FileRecords"]

_HEAD = 8_192


class FileRecords:
    """Records out of whole files; binary and unreadable ones are passed over, counted and named."""

    in_loop = False

    def __init__(
        self,
        name: str,
        origins: Callable[[SourceWarnings], Iterable[Origin]],
        options: ReadOptions,
        *,
        single: bool,
    ) -> None:
        options.refuse_columns("files of text have no columns")
        self._origins = origins
        self._encoding = options.encoding
        self.warnings = SourceWarnings()
        self.info = SourceInfo(
            name=name,
            format="text",
            encoding=options.encoding,
            said=(
                "the file is one record, its name is its id"
                if single
                else f"each file is a record, its id is its path below {name!r}",
            ),
            origins=(name,),
        )

    def records(self) -> Iterator[Record]:
        """Return the records, by path."""
        self.warnings.clear()
        for origin in self._origins(self.warnings):
            record = self._record(origin)
            if record is not None:
                yield record

    def _record(self, origin: Origin) -> Record | None:
        name = encodable(origin.name, self.warnings, origin.name)
        try:
            if looks_binary(origin.head(_HEAD)):
                self.warnings.add("binary-files", name)
                return None
            text = decode_whole(origin, self._encoding, self.warnings)
        except SourceError as error:
            self.warnings.add("unreadable-files", name, error.what)
            return None
        if "\0" in text:
            self.warnings.add("nul-characters", name)
        return Record(id=name, text=encodable(text, self.warnings, name), where=name)
