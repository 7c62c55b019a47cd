"""Which columns are the id and the text: named by the caller, else detected, and said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executors.errors import SourceError

__all__ = ["HEAD", "Columns", "Rows", "choose"]

Rows = Sequence[Mapping[str, object]]
"""The first rows of a source, by column."""

HEAD = 50
"""Rows that detection looks at."""

_IDS = ("id", "_id", "key", "uuid", "guid", "record_id", "doc_id", "document_id", "message_id")
_MAIN = (
    "text",
    "body",
    "content",
    "message",
    "review",
    "comment",
    "document",
    "description",
    "post",
    "tweet",
    "sentence",
    "article",
    "abstract",
    "transcript",
    "note",
    "notes",
)
_TITLES = ("subject", "title", "headline", "summary")
_NEVER_TEXT = re.compile(
    r"^(label|labels|truth|target|class|category|gold|answer|verdict|y|is_.*|.*_?(id|date|time|at|url|uri|link|hash))$"
)
_NAMES_ONE = re.compile(r"(?:^|_)(?:id|no|nr|num|number|ref|reference|code)$")
_MANY_TIMES = 3.0  # how much longer than the next column the texts must be to be chosen by length
_SAMPLE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that records are made of; no other column ever reaches a text."""

    id: str | None
    texts: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.texts if self.id is None else (self.id, *self.texts)


def choose(
    rows: Rows,
    names: Sequence[str] | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the caller's own word for it
    text: str | Sequence[str] | None = None,
    where: str,
) -> Columns:
    """Return the columns to read.

    Args:
        rows: the first rows.
        names: all column names where the format has a header; else those of the first rows.
        where: the source's name, for errors.

    Raises:
        SourceError: a named column is missing or stands twice, or no column is clearly the text.
    """
    known = list(names) if names is not None else _names_of(rows)
    wanted = (text,) if isinstance(text, str) else tuple(text or ())
    if rows or names is not None:
        for name in (*wanted, *((id,) if id is not None else ())):
            _require(name, known, rows, where)
    id_column, id_said = _choose_id(rows, known, id)
    texts, text_said = _choose_texts(rows, known, wanted, id_column, where)
    for name in (*texts, *((id_column,) if id_column is not None else ())):
        if known.count(name) > 1:
            _require(name, known, rows, where)
    return Columns(id=id_column, texts=texts, said=(id_said, text_said))


def _names_of(rows: Rows) -> list[str]:
    names: dict[object, None] = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if isinstance(name, str)]


def _require(name: str, known: Sequence[str], rows: Rows, where: str) -> None:
    number = list(known).count(name)
    if number == 1:
        return
    what = f"no column {name!r}" if number == 0 else f"{number} columns are called {name!r}"
    raise SourceError(what, where=where, hint=f"the columns are: {_listing(known, rows)}")


def _choose_id(rows: Rows, known: Sequence[str], named: str | None) -> tuple[str | None, str]:
    if named is not None:
        return named, f"id column {named!r} (as asked)"
    plain = {_plain(name): name for name in reversed(known)}
    for candidate in _IDS:
        if candidate in plain:
            return plain[candidate], f"id column {plain[candidate]!r} (named so)"
    for name in known:
        if _ends_in_id(name) and _unique(rows, name):
            return name, f"id column {name!r} (named so, no value twice in the first rows)"
    return None, "no id column: ids are made from the numbers of lines or rows"


def _choose_texts(
    rows: Rows, known: Sequence[str], wanted: tuple[str, ...], id_column: str | None, where: str
) -> tuple[tuple[str, ...], str]:
    if wanted:
        return wanted, _say(wanted, "as asked")
    plain = {_plain(name): name for name in reversed(known) if name != id_column}
    titles = [plain[name] for name in _TITLES if name in plain][:1]
    main = [plain[name] for name in _MAIN if name in plain]
    if len(main) == 1 or (main and _plain(main[0]) == "text"):
        found = (*titles, main[0])
        return found, _say(found, "named so")
    if not rows:
        return (), "no rows, so no text column"
    chosen = _longest(rows, [n for n in known if n != id_column and _may_be_text(n)])
    if chosen is None:
        raise SourceError(
            "no column is clearly the text",
            where=where,
            hint=f"name it with --text NAME (text='NAME'); the columns are: {_listing(known, rows)}",
        )
    found = (*(title for title in titles if title != chosen), chosen)
    return found, _say(found, "longest texts")


def _longest(rows: Rows, names: Sequence[str]) -> str | None:
    lengths = sorted(((_mean_length(rows, name), name) for name in names), reverse=True)
    lengths = [(length, name) for length, name in lengths if length > 0]
    if not lengths:
        return None
    if len(lengths) == 1 or lengths[0][0] >= _MANY_TIMES * lengths[1][0]:
        return lengths[0][1]
    return None


def _mean_length(rows: Rows, name: str) -> float:
    """Mean characters of a column of strings; 0 when it holds numbers, spelled or not."""
    values = [value for row in rows if (value := row.get(name)) is not None]
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values) or all(_is_number(value) for value in texts):
        return 0.0
    return sum(map(len, texts)) / len(texts)


def _is_number(value: str) -> bool:
    try:
        float(value or "0")
    except ValueError:
        return False
    return True


def _unique(rows: Rows, name: str) -> bool:
    values = [row.get(name) for row in rows]
    return None not in values and "" not in values and len({str(v) for v in values}) == len(values)


def _plain(name: str) -> str:
    """Return the name in lower snake case: `MessageID`, `message-id` and `message_id` are one."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-]+", "_", snake).casefold()


def _ends_in_id(name: str) -> bool:
    return bool(_NAMES_ONE.search(_plain(name)))


def _may_be_text(name: str) -> bool:
    return not _NEVER_TEXT.match(_plain(name))


def _say(columns: Sequence[str], why: str) -> str:
    word = "text column" if len(columns) == 1 else "text columns"
    return f"{word} {' + '.join(map(repr, columns))} ({why})"


def _listing(known: Sequence[str], rows: Rows) -> str:
    shown: list[str] = []
    for name in known[:30]:
        sample = next((row[name] for row in rows if row.get(name) not in (None, "")), None)
        short = repr(sample if not isinstance(sample, str) else sample[:_SAMPLE])[: _SAMPLE + 2]
        shown.append(f"{name!r}" if sample is None else f"{name!r} (as in {short})")
    more = f" and {len(known) - 30} more" if len(known) > 30 else ""
    return ", ".join(shown) + more
