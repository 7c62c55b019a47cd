"""The shape of a question: asked of each record, of everything, or after one thing. Pure and linear.

Word lists know the commonest forms of a dozen languages and nothing of the rest; marks know more: `¿`,
question particles, lists of choices. A question of a shape that is not known here has none, and whoever
must not miss a record then scans. A typed question has a shape for certain.
"""

from __future__ import annotations

import re
from typing import Final

from corpus.questions import OneOf, Question, YesNo

__all__ = ["asks_one_thing", "clauses_of", "compiles_to_count", "says_contains"]

_READ: Final = 4_000
"""Characters of a task whose shape is looked at: questions stand at the beginning."""

# Verbs that open a yes/no question, with a subject that is the record itself or nobody in particular.
_YES_NO: Final = re.compile(
    r"^(?:"
    r"(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|must)(?:n['\u2019]t)?\s+"
    r"(?:it|this|that|these|those|they|there|any(?:one|body|thing)?|each|(?:a|an|the)\s+(?:\w+\s+)?"
    r"(?:texts?|records?|documents?|reports?|tickets?|mails?|e-?mails?|messages?|reviews?|comments?"
    r"|posts?|articles?|entry|entries|files?|authors?|writers?|senders?|customers?|users?|patients?"
    r"|notes?|clauses?|contracts?))\b"
    r"|(?:ist|sind|war|waren|hat|haben|hatte|wird|werden|kann|soll|geht|handelt|gibt|steht|nennt"
    r"|enth\u00e4lt|erw\u00e4hnt|beschreibt)\s+(?:es|dies\w{0,2}|das|sie|er|man|jemand|(?:der|die|das)\s+"
    r"(?:text|datensatz|dokument|bericht|ticket|mail|e-?mail|nachricht|kunde|kundin|autor|absender))\b"
    r"|est[- ]ce\s+qu|\w{1,20}-(?:t-)?(?:ils?|elles?|on|ce)\b"
    r"|(?:is|gaat|heeft|bevat|zijn|wordt|noemt)\s+(?:het|dit|deze|dat|er)\b"
    r"|czy\s|\u0447\u0438\s|\u0647\u0644\s|\u0915\u094d\u092f\u093e\s"
    r")",
    re.IGNORECASE,
)
_PARTICLE: Final = re.compile(
    r"\b\u043b\u0438\b|\u662f\u5426|\u6709\u6ca1\u6709|\u6709\u6c92\u6709|[\u5417\u55ce][\uff1f?]?$|\u304b[\u3002\uff1f?]?$"
    r"|[\uac00-\ud7a3]\uae4c[\uff1f?]?$",
    re.IGNORECASE,
)
_WHICH: Final = re.compile(
    r"\b(?:who|whom|whose|where|when|which|what|why|how(?!\s+(?:many|much|often))"
    r"|wer|wem|wen|wessen|wo|wohin|woher|wann|welche[rsnm]?|was|warum|wieso|wie(?!\s*viel)"
    r"|qui|o\u00f9|quand|quel(?:le)?s?|quoi|pourquoi|comment"
    r"|qui\u00e9n(?:es)?|d\u00f3nde|cu\u00e1ndo|cu\u00e1l(?:es)?|qu\u00e9|c\u00f3mo"
    r"|chi|dove|quando|quale?|che\s+cosa|cosa|perch\u00e9|come"
    r"|wie|waar|wanneer|welke?|wat|waarom|hoe(?!veel)"
    r"|quem|onde|qual|kto|gdzie|kiedy|kt\u00f3r\w{1,2}|dlaczego"
    r"|\u043a\u0442\u043e|\u0433\u0434\u0435|\u043a\u043e\u0433\u0434\u0430|\u043a\u0430\u043a\u043e\u0439|\u043a\u0430\u043a\u0430\u044f|\u0447\u0442\u043e|\u043f\u043e\u0447\u0435\u043c\u0443)\b"
    r"|[\u8c01\u8ab0\u54ea]|\u4ec0\u4e48|\u4ec0\u9ebc|\u4f55\u65f6|\u4f55\u6642|\u4e3a\u4ec0|\u600e[\u4e48\u6a23]"
    r"|\u3044\u3064|\u3069\u3053|\u3069\u306e|\u306a\u305c|\u4f55[\u304c\u3092\u304b]|\ub204\uac00|\ub204\uad6c|\uc5b8\uc81c|\uc5b4\ub514|\ubb34\uc5c7",
    re.IGNORECASE,
)
_FIND: Final = re.compile(
    r"^(?:please\s+)?(?:find|locate|look\s+up|search\s+for|finde|suche?|trouve[rz]?|busca|encuentra|cerca|trova"
    r"|zoek|znajd\u017a|\u043d\u0430\u0439\u0434\u0438)\b|^(?:\u627e|\u67e5\u627e)",
    re.IGNORECASE,
)
# A list of short choices at the end: ": billing, bug or praise?"
_CHOICES: Final = re.compile(
    r":\s*[^:,;|/?\n]{1,60}(?:(?:\s*[,;|/\u3001]\s*|\s+(?:or|oder|ou|o|of|lub|\u0438\u043b\u0438)\s+)[^:,;|/?\n]{1,60}){1,30}[?\uff1f]?$",
    re.IGNORECASE,
)
_CONTAINS: Final = re.compile(
    r"\b(?:mention\w{0,3}|contain\w{0,3}|includ(?:e|es|ing)|says?|quot(?:e|es|ing)|hold(?:s|ing)?"
    r"|cit(?:e|es|ing)|refer(?:s|ring)?\s+to|with\s+the\s+(?:words?|terms?|phrases?|strings?|ids?)"
    r"|nenn(?:t|en)|erw\u00e4hn(?:t|en)|enth(?:\u00e4lt|alten)|mentionne\w{0,3}|contien\w{0,4}"
    r"|menciona\w?|contiene\w?|bevat(?:ten)?|zawiera\w{0,2})\b"
    r"|\u0441\u043e\u0434\u0435\u0440\u0436\u0430\u0442|\u0443\u043f\u043e\u043c\u0438\u043d\u0430|\u63d0\u5230|\u5305\u542b|\u542b\u6709|\u542b\u3080",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"(?<=[^\s.?!;])[.?!](?=\s|$)|[;\n\u3002\uff1f\uff01\uff1b]"
    r"|,\s+(?:and|then|und|dann|et|puis|y|luego|e|poi|en|dan|i|\u0438)\s",
    re.IGNORECASE,
)


def compiles_to_count(task: str | Question) -> bool:
    """Return whether a question is asked of each record, so that its answers are counted.

    That is every typed question; a yes/no question about it, this, the text or nobody in particular;
    and one that lists its choices. A yes/no question about somebody ("did Bob sign?") is not.

    Example:
        >>> compiles_to_count("Does the customer want a refund?")
        True
        >>> compiles_to_count("Who wants a refund?")
        False
    """
    match task:
        case YesNo() | OneOf():
            return True
        case str():
            text = task[:_READ].strip()
    if _CHOICES.search(text):
        return True
    if _WHICH.search(text):
        return False
    return text.startswith("\u00bf") or bool(_YES_NO.search(text) or _PARTICLE.search(text))


def asks_one_thing(task: str) -> bool:
    """Return whether a text asks who, where, when, which, why, or to find something."""
    text = task[:_READ].strip()
    return bool(_WHICH.search(text) or _FIND.search(text))


def says_contains(task: str) -> bool:
    """Return whether a text speaks of records that mention or contain something."""
    return bool(_CONTAINS.search(task[:_READ]))


def clauses_of(task: str) -> list[str]:
    """Return the sentences of a task, and the clauses that are joined by "and" behind a comma."""
    return [clause.strip() for clause in _CLAUSE.split(task[:_READ]) if clause.strip()]
