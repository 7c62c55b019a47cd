"""Tools over a corpus: count by judging every record, find by words, match exactly, read.

What they return is text for a model: numbers that code counted, and texts of records as data between
marks. All of them only read, so they may run side by side and be run again after a crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, cast

from anyio import to_thread

from corpus.exact import Mode, Predicate, terms_predicate
from corpus.search.base import Searcher
from corpus.search.hybrid import HybridSearch
from corpus.shelf import Shelf
from corpus.spool import Spool
from corpus.tool_texts import (
    ExactFound,
    ScanFound,
    exact_text,
    record_text,
    scan_text,
    search_text,
)
from executors.errors import SourceError, ValidationError
from executors.tools.base import Arguments, Tool, ToolContext, words_alone

__all__ = [
    "EXACT",
    "READ",
    "SCAN",
    "SEARCH",
    "Counting",
    "Ready",
    "Records",
    "ScanFound",
    "build_exact_tool",
    "build_read_tool",
    "build_scan_tool",
    "build_search_tool",
    "corpus_tools",
    "search_text",
]

SCAN: Final = "scan_count"
SEARCH: Final = "search_memory"
EXACT: Final = "exact_match"
READ: Final = "read_record"

_SCAN_DESCRIPTION: Final = """\
Count the records that match a yes/no question, by judging every record of the corpus. Use it for "how many", "all", "every", "list all": it is the only tool whose number is complete. State the question so that it can be answered of one record by itself. The count is made by code; report it as it stands, and report it as a floor where the result says INCOMPLETE."""

_SEARCH_DESCRIPTION: Final = """\
Find the few records that fit some words best, with a passage of each. Use it to find one thing: who, when, where, which. It sees the best hits only, so it can never count and never shows that something is absent."""

_EXACT_DESCRIPTION: Final = """\
Count and list the records that hold exact terms: names, ids, codes, quoted words. Code compares every record; no meaning is judged. Case and Unicode form make no difference."""

_READ_DESCRIPTION: Final = """\
Read the text of one record by its id, a piece at a time, where a passage of a search is not enough."""

Counting = Callable[[str], Awaitable[ScanFound]]
"""From a yes/no question, asked of each record, to what came out."""

Records = Spool | Callable[[], Awaitable[Spool]]
"""The records, or a function that is called at each use and may read the source at first."""

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
        stays=True,
        judged=words_alone,
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
        stays=True,
        judged=words_alone,
        description=_SEARCH_DESCRIPTION,
        parameters=_parameters(
            {"query": {"type": "string", "description": "Words that the record may hold."}},
            required=["query"],
        ),
        execute=execute,
        parallel=True,
        idempotent=True,
    )


def build_exact_tool(spool: Records, *, name: str = EXACT) -> Tool:
    """Return the tool that counts and lists the records which hold exact terms."""

    async def execute(arguments: Arguments, context: ToolContext) -> str:
        del context
        terms = _terms(arguments)
        if not terms:
            return "error: there are no terms; give one or more words, names or ids"
        mode = cast("Mode", arguments.get("mode", "all"))
        whole = arguments.get("whole_words", True) is not False
        predicate = terms_predicate(terms, mode=mode, whole_words=whole)
        records = spool if isinstance(spool, Spool) else await spool()
        found = ExactFound(terms=terms, every=mode == "all", looked_at=len(records))
        return await to_thread.run_sync(partial(_matched, records, predicate, found))

    return Tool(
        name=name,
        stays=True,
        judged=words_alone,
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


def build_read_tool(spool: Records, *, characters: int = 6_000, name: str = READ) -> Tool:
    """Return the tool that shows the text of one record, a piece at a time.

    Args:
        characters: of a piece.
    """

    async def execute(arguments: Arguments, context: ToolContext) -> str:
        del context
        id_, start = _text(arguments, "id"), arguments.get("start", 0)
        if id_ is None or type(start) is not int or start < 0:
            return "error: give the id of a record, and a start of 0 or more"
        records = spool if isinstance(spool, Spool) else await spool()
        try:
            return await to_thread.run_sync(partial(_read, records, id_, start, characters))
        except SourceError as error:
            return f"error: {error.what}; {error.hint}"

    return Tool(
        name=name,
        stays=True,
        judged=words_alone,
        description=_READ_DESCRIPTION,
        parameters=_parameters(
            {
                "id": {"type": "string"},
                "start": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Character to begin at; 0 by default.",
                },
            },
            required=["id"],
        ),
        execute=execute,
        parallel=True,
        idempotent=True,
    )


def corpus_tools(
    shelf: Shelf | None, *, count: Counting | None = None, memory: Searcher | None = None
) -> list[Tool]:
    """Return what a worker is offered for mixed questions: as many as there is ground for.

    Args:
        shelf: the corpus, searched, matched exactly and read; None where there is none.
        count: judges every record of it.
        memory: what is remembered besides; it is searched together with the corpus.
    """
    tools: list[Tool] = []
    if count is not None:
        tools.append(build_scan_tool(count))
    if shelf is None:
        return [*tools, build_search_tool(memory)] if memory is not None else tools
    tools.append(build_search_tool(partial(_searcher, shelf, memory)))
    return [*tools, build_exact_tool(shelf.spool), build_read_tool(shelf.spool)]


async def _searcher(shelf: Shelf, memory: Searcher | None) -> Searcher:
    ready = await shelf.searcher()
    return ready if memory is None else HybridSearch([ready, memory])


def _read(spool: Spool, id_: str, start: int, characters: int) -> str:
    ordinal = spool.find(id_)
    if ordinal is None:
        return (
            f"error: no record has this id among {len(spool)}; ids are spelt as results show them"
        )
    return record_text(spool.record(ordinal), start, characters)


def _matched(spool: Spool, predicate: Predicate, found: ExactFound) -> str:
    """Look at every record; blocking."""
    for record in spool:
        if not record.empty and predicate(record.text):
            found.add(record)
    return exact_text(found)


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
