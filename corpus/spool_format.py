"""The files of a spool, and how one record lies in them.

records.bin   each record: three lengths (little-endian uint32), id, place, text (UTF-8)
offsets.bin   uint64: where each record begins, and where the last one ends
texts.bin     16 bytes a record: BLAKE2b of the text
ids.bin       16 bytes a record: BLAKE2b of the id
order.bin     uint32: ordinals, sorted by the digest of their id
first.bin     uint32: the first record with the same text, the record itself when it is that
empty.bin     uint8: 1 where there is nothing but white space
odd.bin       20 bytes for each id that is not in normal form: digest of that form, ordinal
meta.json     what was read, written last: a folder without it is no spool
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from corpus.records import Part, Record
from corpus.sources.base import SourceInfo, SourceWarning
from corpus.spool_sums import HINT, settle_files
from executors.errors import RunDirError
from executors.journal.json_lines import decode
from executors.makers import maker
from executors.private import written_durably

__all__ = [
    "MAX_RECORDS",
    "ODD",
    "Meta",
    "pack",
    "pack_all",
    "read_meta",
    "unpack",
    "unpack_id",
    "unpack_parts",
    "write_meta",
]

MAX_RECORDS = (1 << 32) - 1
"""Ordinals are uint32."""
ODD = np.dtype([("digest", "V16"), ("ordinal", "<u4")])
"""One id that is not in normal form."""

_HEAD = struct.Struct("<III")
_HEAD_SIZE = _HEAD.size
_packed, _unpacked = _HEAD.pack, _HEAD.unpack_from
_part = maker(Part)
_NOWHERE = 0xFFFFFFFF
_BROKEN = (struct.error, UnicodeDecodeError)
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What is known of a whole spool."""

    records: int
    identical: int
    empty: int
    fingerprint: str
    renamed: dict[int, str]
    info: SourceInfo
    warnings: tuple[SourceWarning, ...]
    forgotten: tuple[int, ...] = ()
    """Ordinals of records whose text was erased on request."""
    sums: dict[str, str] = field(default_factory=dict[str, str])
    """A hash of each other file by its name; none in a spool of before there were any."""


def pack(record: Record, text: bytes) -> bytes:
    """Return a record as it lies in `records.bin`; `text` is its text in UTF-8."""
    return pack_all([record.id.encode("utf-8")], [record.where], [text])[0]


def pack_all(ids: list[bytes], places: list[str | None], texts: list[bytes]) -> list[bytes]:
    """Return records as they lie in `records.bin`, of their ids and texts in UTF-8."""
    bodies: list[bytes] = []
    for id_, place, text in zip(ids, places, texts, strict=True):
        if place is None:
            bodies.append(_packed(len(id_), _NOWHERE, len(text)) + id_ + text)
        else:
            where = place.encode("utf-8", "replace")
            bodies.append(_packed(len(id_), len(where), len(text)) + id_ + where + text)
    return bodies


def unpack(raw: bytes, id_: str | None, at: int = 0) -> Record:
    """Return the record that begins at a place; `id_` replaces the one in the file.

    Raises:
        RunDirError: there is no record at that place; as the two functions below.
    """
    try:
        id_start = at + _HEAD.size
        id_size, where_size, text_size = _HEAD.unpack_from(raw, at)
        start = id_start + id_size
        nowhere = where_size == _NOWHERE
        end = start if nowhere else start + where_size
        return Record(
            id=raw[id_start:start].decode() if id_ is None else id_,
            text=raw[end : end + text_size].decode(),
            where=None if nowhere else raw[start:end].decode(),
        )
    except _BROKEN as error:
        raise _no_record() from error


def unpack_parts(raw: bytes, ordinals: list[int], places: list[int]) -> list[Part]:
    """Return records that begin at these places, as parts; their ids as they stand in the file.

    What a scan does for each record it judges, so it makes nothing else on the way.
    """
    found: list[Part] = []
    try:
        for ordinal, at in zip(ordinals, places, strict=True):
            id_size, where_size, text_size = _unpacked(raw, at)
            start = at + _HEAD_SIZE
            end = start + id_size
            begin = end if where_size == _NOWHERE else end + where_size
            text = raw[begin : begin + text_size].decode()
            found.append(_part(ordinal=ordinal, id=raw[start:end].decode(), text=text))
    except _BROKEN as error:
        raise _no_record() from error
    return found


def unpack_id(raw: bytes) -> str:
    """Return the id in the file."""
    try:
        size = _HEAD.unpack_from(raw)[0]
        return raw[_HEAD.size : _HEAD.size + size].decode()
    except _BROKEN as error:
        raise _no_record() from error


def _no_record() -> RunDirError:
    return RunDirError("the spool is damaged: records.bin holds what is no record", hint=HINT)


def write_meta(directory: Path, meta: Meta) -> None:
    """Write `meta.json` durably, all of it or nothing, once the other files are durable."""
    meta = replace(meta, sums=settle_files(directory))
    draft = directory / "meta.json.new"
    text = json.dumps({"version": _VERSION, **asdict(meta)}, ensure_ascii=False, indent=1)
    with written_durably(draft) as file:
        file.write(text.encode("utf-8"))
    draft.replace(directory / "meta.json")
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_meta(directory: Path) -> Meta:
    """Return what `write_meta` wrote.

    Raises:
        RunDirError: the folder holds no finished spool, or one of another version.
    """
    path = directory / "meta.json"
    try:
        found = cast("dict[str, Any]", decode(path.read_bytes()))
        if found["version"] != _VERSION:
            raise RunDirError(
                f"spool version {found['version']!r}, not {_VERSION}", where=str(directory)
            )
        return _meta_of(found)
    except FileNotFoundError as error:
        raise RunDirError(f"no finished spool in {str(directory)!r}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"the spool's meta.json is damaged: {error}"
        raise RunDirError(what, where=str(path), hint=HINT) from error


def _meta_of(found: dict[str, Any]) -> Meta:
    for name in ("records", "identical", "empty"):
        if type(found[name]) is not int or found[name] < 0:
            raise ValueError(f"{name} is {found[name]!r}, which is no count")
    if not isinstance(found["fingerprint"], str):
        raise TypeError(f"the fingerprint is {found['fingerprint']!r}")
    if not all(type(n) is int and 0 <= n < found["records"] for n in found.get("forgotten", ())):
        raise ValueError("what was forgotten are no records")
    info = cast("dict[str, Any]", found["info"])
    for name in ("text_columns", "said", "origins"):
        info[name] = tuple(info[name])
    warnings = cast("list[dict[str, Any]]", found["warnings"])
    return Meta(
        records=found["records"],
        identical=found["identical"],
        empty=found["empty"],
        fingerprint=found["fingerprint"],
        renamed={int(ordinal): id_ for ordinal, id_ in found["renamed"].items()},
        info=SourceInfo(**info),
        warnings=tuple(
            SourceWarning(code=w["code"], count=w["count"], examples=tuple(w["examples"]))
            for w in warnings
        ),
        forgotten=tuple(found.get("forgotten", ())),
        sums=dict(found.get("sums", {})),
    )
