"""Which way a question goes over a corpus, decided by rules that anyone can read.

A question that needs every record (how many, list all) is never answered by a search: a search
sees the best hits and stays silent about the rest. The guard only ever upgrades search to scan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from corpus.questions import Question
from executors.errors import ValidationError
from planner.completeness import implies_completeness
from planner.lookups import terms_of
from planner.shapes import asks_one_thing, clauses_of, compiles_to_count, says_contains

__all__ = ["Retrieval", "Route", "route", "route_by_rules"]

Retrieval = Literal["scan", "search", "exact", "tools", "read"]
"""How a node reads its corpus: every record judged and counted by code; the best hits of a search; a
rule; tools that a worker chooses from; or all of it shown in the worker's own message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way taken and why."""

    retrieval: Retrieval | None
    """None: there is no corpus, so nothing is retrieved."""
    upgraded: bool
    """A search was asked for and a scan is done."""
    reason: str
    terms: tuple[str, ...] = ()
    """Exact terms of the question, where they decided."""


def route(
    task: str,
    *,
    has_corpus: bool,
    retrieval: str | None = None,
    contract: str | None = None,
    counts: bool | None = None,
) -> Route:
    """Choose how a corpus is read, as asked for; the guard may only turn a search into a scan.

    Args:
        task: the question.
        has_corpus: whether there is one.
        retrieval: what was asked for; None lets the rules decide.
        contract: the definition of done; it too can ask for completeness.
        counts: whether the question compiles to a count; None lets `compiles_to_count` say.

    Raises:
        ValidationError: `retrieval` is none of the choices.
    """
    if retrieval is not None and retrieval not in get_args(Retrieval):
        raise ValidationError(
            f"retrieval={retrieval!r}", hint=f"choose one of {', '.join(get_args(Retrieval))}"
        )
    asked = compiles_to_count(task) if counts is None else counts
    complete = asked or implies_completeness(task) or implies_completeness(contract)
    match retrieval:
        case None if has_corpus:
            return Route(retrieval="scan", upgraded=False, reason="a corpus is scanned by default")
        case None:
            return Route(retrieval=None, upgraded=False, reason="there is no corpus")
        case "search" if complete:
            return Route(
                retrieval="scan",
                upgraded=True,
                reason="the question needs every record, and a search sees only the best hits",
            )
        case "scan" | "search" | "exact" | "tools" | "read":
            return Route(retrieval=retrieval, upgraded=False, reason="as asked")
        case _:
            raise ValidationError(f"retrieval={retrieval!r}")


def route_by_rules(
    task: str | Question, *, contract: str | None = None, tools: bool = True
) -> Route:
    """Choose how a corpus is read from the words of a task alone, without a model.

    For tasks that nobody gave a route, where no model is fit to choose one. In doubt it scans.

    Args:
        contract: the definition of done; it too can ask for completeness.
        tools: whether the worker can call tools, so that one task may go several ways. Without
            them "exact" is a count of the records that hold all terms.

    Example:
        >>> route_by_rules("Who signed the lease?").retrieval
        'search'
    """
    if not isinstance(task, str):
        return _route("scan", "a typed question is asked of each record")
    if tools and _is_mixed(task):
        return _route("tools", "one part asks for all records, another one for a single thing")
    complete = implies_completeness(task) or implies_completeness(contract)
    if terms := _exact_terms(task, complete=complete):
        shown = ", ".join(map(repr, terms))
        if says_contains(task) or tools:
            return _route("exact", f"the task names exact terms, which code finds: {shown}", terms)
        return _route("search", f"the task asks about what it names: {shown}", terms)
    if complete:
        return _route("scan", "the question needs every record")
    if compiles_to_count(task):
        return _route("scan", "the question is yes or no, or one of some, for each record")
    if asks_one_thing(task):
        return _route("search", "the task asks for one thing, and its words say where to look")
    return _route("scan", "nothing in the task says that some records are enough")


def _route(retrieval: Retrieval, reason: str, terms: tuple[str, ...] = ()) -> Route:
    return Route(retrieval=retrieval, upgraded=False, reason=reason, terms=terms)


def _exact_terms(task: str, *, complete: bool) -> tuple[str, ...]:
    """Return the terms by which code alone can answer or find, where it can.

    To count what is "about" a term takes a judge; to count what mentions it does not. A needle is
    where its id is.
    """
    found = terms_of(task)
    if says_contains(task):
        return found.exact
    return () if complete else found.ids


def _is_mixed(task: str) -> bool:
    """Whether one clause needs every record and another one asks for a single thing."""
    clauses = clauses_of(task)
    complete = [implies_completeness(clause) for clause in clauses]
    needles = [
        asks_one_thing(clause) and not whole
        for clause, whole in zip(clauses, complete, strict=True)
    ]
    return any(complete) and any(needles)
