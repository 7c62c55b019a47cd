"""Tools over a corpus: count by judging every record, find by words, match exactly.

What they return is text for a model: numbers that code counted, and texts of records as data between
marks. All of them only read, so they may run side by side and be run again after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, cast

from anyio import to_thread

from corpus.exact import Mode, Predicate, terms_predicate
from corpus.prompts import inert
from corpus.search.base import Hit, Searcher
from corpus.search.passages import passage
from corpus.search.words import read_query
from corpus.spool import Spool
from executors.errors import ValidationError
from executors.fences import fenced
from executors.tools.base import Arguments, Tool, ToolContext

__all__ = [
    "EXACT",
    "SCAN",
    "SEARCH",
    "Counting",
    "Ready",
    "ScanFound",
    "build_exact_tool",
    "build_scan_tool",
    "build_search_tool",
    "scan_text",
    "search_text",
]

SCAN: Final = "scan_count"
SEARCH: Final = "search_memory"
EXACT: Final = "exact_match"

_LISTED: Final = 50  # ids that are named; the rest is counted
_SHOWN: Final = 8  # records whose passage is shown
_ID_CHARACTERS: Final = 200

_SCAN_DESCRIPTION: Final = """\
Count the records that match a yes/no question, by judging every record of the corpus. Use it for "how many", "all", "every", "list all": it is the only tool whose number is complete. State the question so that it can be answered of one record by itself. The count is made by code; report it as it stands, and report it as a floor where the result says INCOMPLETE."""

_SEARCH_DESCRIPTION: Final = """\
Find the few records that fit some words best, with a passage of each. Use it to find one thing: who, when, where, which. It sees the best hits only, so it can never count and never shows that something is absent."""

_EXACT_DESCRIPTION: Final = """\
Count and list the records that hold exact terms: names, ids, codes, quoted words. Code compares every record; no meaning is judged. Case and Unicode form make no difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFound:
    """What judging every record came to."""

    count: int
    """Records that matched."""
    ids: Sequence[str]
    """Of the records that matched, in corpus order; may be read lazily."""
    scanned: int
    """Records of the corpus."""
    window: int
    """Records a call was shown at most."""
    passes: int
    unsure: int = 0
    """Records that the judge looked at and could not tell."""
    unresolved: int = 0
    """Records that were never judged."""
    reason: str | None = None
    """Why some were not, where that is known."""


Counting = Callable[[str], Awaitable[ScanFound]]
"""From a yes/no question, asked of each record, to what came out."""

Ready = Searcher | Callable[[], Awaitable[Searcher]]
"""What searches, or a function that makes it ready when it is first asked for."""


def build_scan_tool(count: Counting, *, name: str = SCAN) -> Tool:
    """Return the tool that counts by judging every record.

    What stops a run passes through it untouched. It is run again on a resume, since each of its calls
    is in the journal.

    Args:
        count: does it, over a corpus that it reads once.
    """

    async def execute(arguments: Arguments, context: ToolContext) -> str:
        del context
        question = _text(arguments, "question")
        if question is None:
            return "error: the question is blank; ask something that is yes or no of one record"
        return scan_text(await count(question))

    return Tool(
        name=name,
        description=_SCAN_DESCRIPTION,
        parameters=_parameters(
            {"question": {"type": "string", "description": "Yes or no, asked of each record."}},
            required=["question"],
        ),
        execute=execute,
        parallel=True,
        idempotent=True,
        replays=True,
    )


def build_search_tool(searcher: Ready, *, limit: int = 8, name: str = SEARCH) -> Tool:
    """Return the tool that finds the records which fit some words best.

    Args:
        searcher: what searches; a function is called at each use, and may build an index at first.
        limit: hits that are shown.
    """

    async def execute(arguments: Arguments, context: ToolContext) -> str:
        del context
        query = _text(arguments, "query")
        if query is None:
            return "error: the query is blank; give words that the records may hold"
        ready = await searcher() if callable(searcher) else searcher
        try:
            hits = await ready.search(query, limit=limit)
        except ValidationError as error:
            return f"error: {error.what}; {error.hint}"
        return search_text(query, hits, ready.records)

    return Tool(
        name=name,
        description=_SEARCH_DESCRIPTION,
        parameters=_parameters(
            {"query": {"type": "string", "description": "Words that the record may hold."}},
            required=["query"],
        ),
        execute=execute,
        parallel=True,
        idempotent=True,
    )


def build_exact_tool(spool: Spool | Callable[[], Awaitable[Spool]], *, name: str = EXACT) -> Tool:
    """Return the tool that counts and lists the records which hold exact terms.

    Args:
        spool: the records; a function is called at each use, and may read the source at first.
    """

    async def execute(arguments: Arguments, context: ToolContext) -> str:
        del context
        terms = _terms(arguments)
        if not terms:
            return "error: there are no terms; give one or more words, names or ids"
        mode = cast("Mode", arguments.get("mode", "all"))
        whole = arguments.get("whole_words", True) is not False
        predicate = terms_predicate(terms, mode=mode, whole_words=whole)
        records = spool if isinstance(spool, Spool) else await spool()
        return await to_thread.run_sync(partial(_exact, records, predicate, terms, mode))

    return Tool(
        name=name,
        description=_EXACT_DESCRIPTION,
        parameters=_parameters(
            {
                "terms": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "minItems": 1,
                    "maxItems": 50,
                    "description": "Plain text, no patterns.",
                },
                "mode": {
                    "enum": ["all", "any"],
                    "description": "Whether a record has to hold all terms (the default) or any.",
                },
                "whole_words": {
                    "type": "boolean",
                    "description": "False finds terms inside longer words too; true by default.",
                },
            },
            required=["terms"],
        ),
        execute=execute,
        parallel=True,
        idempotent=True,
    )


# ---------------------------------------------------------------- what a model reads


def scan_text(found: ScanFound) -> str:
    """Return the result of a count as a model reads it."""
    shape = f"window={found.window}, passes={found.passes}"
    lines = [f"count={found.count} (scanned {found.scanned} records, {shape})"]
    if found.unresolved:
        why = "" if found.reason is None else f": {_line(found.reason)}"
        high = found.count + found.unsure + found.unresolved
        lines.append(
            f"INCOMPLETE: {found.unresolved} record(s) were never judged{why}. The count is a floor, "
            f"not exact: with these judged it could be as high as {high}."
        )
    if found.unsure:
        lines.append(f"unsure: {found.unsure} record(s) that the judge could not tell")
    return "\n".join([*lines, *_ids(found.ids, found.count)])


def search_text(query: str, hits: Sequence[Hit], records: int | None) -> str:
    """Return hits as a model reads them."""
    among = "" if records is None else f" among {records} record(s)"
    if not hits:
        terms = ", ".join(map(_line, read_query(query).terms))
        return (
            f"no hits{among} for: {terms}. The search worked and found nothing; try other words. "
            "It does not show that there is nothing."
        )
    said = {
        "all-words": "hold every word of the query",
        "some-words": "hold some of its words",
        "meaning": "mean something near",
        "words-and-meaning": "fit by words and by meaning",
        "memory": "were recalled",
    }
    how = [f"{sum(hit.how == key for hit in hits)} {text}" for key, text in said.items()]
    head = f"{len(hits)} hit(s){among}, the best ones only: " + ", ".join(
        part for part in how if not part.startswith("0 ")
    )
    entries = fenced("\n".join(map(_entry, hits)), "records")
    return f"{head}\n{entries}"


def _exact(spool: Spool, predicate: Predicate, terms: Sequence[str], mode: Mode) -> str:
    """Look at every record of a spool; blocking."""
    ids: list[str] = []
    entries: list[str] = []
    count = 0
    for record in spool:
        if record.empty or not predicate(record.text):
            continue
        count += 1
        if len(ids) < _LISTED:
            ids.append(record.id)
        if len(entries) < _SHOWN:
            start, end = passage(record.text, terms)
            entries.append(
                _line_of(
                    "record", record.id, record.text[start:end], (start, end), len(record.text)
                )
            )
    named = (" and " if mode == "all" else " or ").join(f'"{_line(term)}"' for term in terms)
    lines = [
        f"count={count} (looked at {len(spool)} records, exact match of {named})",
        *_ids(ids, count),
    ]
    if entries:
        lines.append(fenced("\n".join(entries), "records"))
    return "\n".join(lines)


def _ids(ids: Iterable[str], count: int) -> list[str]:
    first = [_short_id(id_) for id_ in islice(ids, _LISTED)]
    if not first:
        return []
    rest = count - len(first)
    listed = ["ids:", fenced("\n".join(first), "ids")]
    return [*listed, f"and {rest} more ids, not listed"] if rest > 0 else listed


def _entry(hit: Hit) -> str:
    line = _line_of(hit.kind, hit.id, hit.snippet, hit.span, hit.length)
    return f"{line} [{hit.identical} further record(s) with this text]" if hit.identical else line


def _line_of(kind: str, id_: str, text: str, span: tuple[int, int], length: int) -> str:
    """Return `[record] id: text` in one line; a passage says where it stands."""
    start, end = span
    place = "" if end - start >= length else f" (characters {start} to {end} of {length})"
    return f"[{_line(kind)}] {_short_id(id_)}{place}: {_line(text)}"


_SPACES: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _line(text: str) -> str:
    """Return a text as one line of data; quotes from it are found again: white space may differ."""
    return inert(_SPACES.sub(" ", text).strip())


def _short_id(id_: str) -> str:
    line = _line(id_)
    return line if len(line) <= _ID_CHARACTERS else line[: _ID_CHARACTERS - 1] + "…"


# ---------------------------------------------------------------- arguments


def _parameters(properties: Mapping[str, object], *, required: Sequence[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(arguments: Arguments, name: str) -> str | None:
    """Return an argument that is text and not blank."""
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) and value.strip() else None


def _terms(arguments: Arguments) -> list[str]:
    given = arguments.get("terms")
    listed = given if isinstance(given, list) else [given]
    return [term for term in listed if isinstance(term, str) and term.strip()]
