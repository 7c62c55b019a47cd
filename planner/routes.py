"""Which way a question goes over a corpus, decided by rules that anyone can read.

A question that needs every record (how many, list all) is never answered by a search: a search
sees the best hits and stays silent about the rest. The guard only ever upgrades search to scan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from executors.errors import ValidationError

__all__ = ["Retrieval", "Route", "implies_completeness", "route"]

Retrieval = Literal["scan", "search", "exact", "tools", "read"]
"""How a node reads its corpus: every record judged and counted by code; the best hits of a search; a
rule; tools that a worker chooses from; or all of it shown in the worker's own message."""

# English words that ask for everything, and for quantities that need everything.
_COMPLETE: Final = re.compile(
    r"\b(?:all(?!-hands\b)|every|each|how\s+(?:many|much|often)|counts?|counting|total|number\s+of"
    r"|enumerate|exhaustive(?:ly)?|complete(?:ly)?|sum\s+of|average|percent(?:age)?\s+of)\b",
    re.IGNORECASE,
)
# The same in languages that share the Latin script and in a few that do not.
_COMPLETE_ELSEWHERE: Final = re.compile(
    r"\b(?:wie\s*viele?|wieviele?|alle[rns]?|jede[rsnm]?|anzahl|combien|tous|toutes|chaque|nombre\s+de"
    r"|cu[aá]nt[oa]s?|tod[oa]s|cada|quant[oaie]s?|tutt[ie]|ogni|hoeveel|aantal|ile|wszystkie"
    r"|сколько|все|каждый)\b|多少|几个|所有|いくつ|すべて|全部|몇|모든",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way taken and why."""

    retrieval: Retrieval | None
    """None: there is no corpus, so nothing is retrieved."""
    upgraded: bool
    """A search was asked for and a scan is done."""
    reason: str


def implies_completeness(text: object) -> bool:
    """Return whether a text asks for all records or for a quantity; False for what is no text.

    Linear in the length of the text. Knows English and the commonest words of a few other
    languages; a question that compiles to a count needs no guess and passes `counts=True` to
    `route` instead.
    """
    if not isinstance(text, str):
        return False
    return bool(_COMPLETE.search(text) or _COMPLETE_ELSEWHERE.search(text))


def route(
    task: str,
    *,
    has_corpus: bool,
    retrieval: str | None = None,
    contract: str | None = None,
    counts: bool = False,
) -> Route:
    """Choose how a corpus is read.

    Args:
        task: the question.
        has_corpus: whether there is one.
        retrieval: what was asked for; None lets the rules decide.
        contract: the definition of done; it too can ask for completeness.
        counts: the question compiles to a count.

    Raises:
        ValidationError: `retrieval` is none of the choices.
    """
    if retrieval is not None and retrieval not in get_args(Retrieval):
        raise ValidationError(
            f"retrieval={retrieval!r}", hint=f"choose one of {', '.join(get_args(Retrieval))}"
        )
    complete = counts or implies_completeness(task) or implies_completeness(contract)
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
