"""Words that say how large a task is, and which tasks must be checked whatever they cost. Pure.

English in full, since the scores are fitted to it; of a few other languages the words of danger,
which must not be missed, and the verbs that a large task begins with.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ANALYSIS",
    "COMPLEX",
    "CONSTRAINTS",
    "CRITICAL_ACTIONS",
    "CRITICAL_CONTEXT",
    "DANGERS",
    "DESIGN_QUESTION",
    "DOMAINS",
    "ENGLISH",
    "FEATURES",
    "FEATURE_PATTERN",
    "INTEGRATION",
    "LARGE_ELSEWHERE",
    "LOOKUP",
    "MEDIUM",
    "MONEY",
    "MONEY_ACTIONS",
    "ONE_THING",
    "SCOPE",
    "SEQUENCE",
    "SIMPLE",
    "SPEED",
    "TRIVIAL",
]


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b")


def _stems(*stems: str) -> re.Pattern[str]:
    """Return a pattern for words in all their endings, in scripts with and without blanks."""
    spaced = [stem for stem in stems if stem.isascii() or ord(max(stem)) < 0x0590]
    joined = [stem for stem in stems if stem not in spaced]
    return re.compile(rf"\b(?:{'|'.join(spaced)})\w{{0,20}}|{'|'.join(joined)}")


# ---------------------------------------------------------------- size

COMPLEX: Final = _words(
    *("implement", "design", "architect", "refactor", "integrate", "migrate", "build", "create"),
    *("develop", "construct", "engineer", "establish", "transform", "overhaul", "rewrite"),
    *("restructure", "optimi[sz]e"),
)
ANALYSIS: Final = _words(
    *("analy[sz]e", "investigate", "compare", "evaluate", "assess", "review", "audit", "examine"),
    *("research", "diagnose", "profile", "benchmark", "inspect", "study"),
)
MEDIUM: Final = _words(
    *(
        "add",
        "update",
        "fix",
        "modify",
        "change",
        "write",
        "convert",
        "extend",
        "improve",
        "remove",
    ),
    *("rename", "replace", "move", "extract", "configure", "test", "debug", "handle", "validate"),
    "generate",
)
SIMPLE: Final = _words(
    *("show", "list", "get", "read", "print", "display", "find", "check", "open", "view", "run"),
    *("tell", "count", "look", "see", "name", "give", "fetch", "search", "locate", "explain"),
    "describe",
)
SCOPE: Final = _words(
    *("entire", "whole", "system", "platform", "architecture", "codebase", "infrastructure"),
    *("end-to-end", "full-stack", "across", "multiple", "several", "comprehensive", "distributed"),
)
DOMAINS: Final = _words(
    *("auth", "authentication", "authorization", "oauth", "database", "api", "frontend", "backend"),
    *("cache", "caching", "queue", "deployment", "ci", "monitoring", "logging", "security"),
    *("payments?", "billing", "search", "storage"),
)
FEATURES: Final = _words(
    *("dashboard", "flow", "pipeline", "service", "module", "component", "endpoint", "page"),
    *("form", "interface", "workflow", "feature", "parser", "scheduler", "engine", "client"),
    *("server", "library", "tool", "report", "integration", "notification", "registration"),
)
FEATURE_PATTERN: Final = re.compile(
    r"\bwith\s+(?:\w+\s+){0,3}(?:support|validation|tests?|retries|error handling|permissions)\b"
)
INTEGRATION: Final = re.compile(r"\bintegrate\b[^\n.]{0,200}?\bwith\b")
SPEED: Final = re.compile(
    r"\b(?:improve|optimi[sz]e)\s+(?:\w+\s+){0,3}?(?:performance|speed|efficiency)\b"
)
ONE_THING: Final = re.compile(r"\b(?:this|the)\s+(?:function|method|query|loop)\b")
SEQUENCE: Final = re.compile(
    r"\band then\b|\bafter that\b|\bafterwards\b|\bfinally\b|\bfirst(?:ly)?\b|\bsecond(?:ly)?\b"
    r"|\bthird(?:ly)?\b|\bnext,|\bstep \d|\bfollowed by\b"
)
CONSTRAINTS: Final = _words(
    "must", "should", "ensure", "without", "at least", "at most", "no more than", "within",
    "require[sd]?", "backwards? compatible", "backward-compatible", "while keeping",
)  # fmt: skip
DESIGN_QUESTION: Final = re.compile(
    r"\bhow (?:should|would|could|do|can) (?:we|i|you|one)\b[^\n?]{0,200}"
    r"\b(?:design|structure|architect|scale|organi[sz]e|approach)\b"
)
LOOKUP: Final = re.compile(r"\s*(?:what is|what's|where is|where's|which|who|is there|are there)\b")
TRIVIAL: Final = re.compile(
    r"\b(?:typos?|comments?|console\.log|print statements?|version|whitespace|indentation|imports?"
    r"|spelling|docstrings?|log lines?)\b|\bwrite a function (?:that|which|to)\b"
)

# Common words of running English that are none in its neighbours, as "in", "of" and "for" are.
# Without any of them the lists above know nothing.
ENGLISH: Final = _words(
    *(
        "the",
        "and",
        "with",
        "this",
        "that",
        "these",
        "those",
        "what",
        "where",
        "which",
        "who",
        "how",
    ),
    *("why", "when", "does", "from", "are", "into", "their", "each", "every", "any", "your", "it"),
)
LARGE_ELSEWHERE: Final = _stems(
    *("entwirf", "entwerf", "entwickl", "implementier", "refaktor", "migrier", "überarbeit"),
    *("integrier", "erstell", "baue ", "plane ", "restrukturier", "umbau"),
    *("conçois", "concev", "développ", "implément", "refactoris", "migrez", "intègr", "restructur"),
    *("diseñ", "desarroll", "implementa", "refactoriz", "migra ", "integra ", "construy", "crea "),
    *("progett", "svilupp", "desenvolv", "projet", "ontwerp", "ontwikkel", "bouw "),
    *("zaprojekt", "zaimplement", "разработ", "спроектир", "реализ", "внедр", "перепиш"),
    *(
        "设计",
        "開発",
        "开发",
        "实现",
        "實現",
        "重构",
        "迁移",
        "构建",
        "集成",
        "設計",
        "実装",
        "構築",
    ),
    *("설계", "구현", "개발", "구축"),
)

# ---------------------------------------------------------------- danger

DANGERS: Final = re.compile(
    r"\b(?:emergenc(?:y|ies)|outages?|breach(?:es|ed|ing)?|vulnerabilit(?:y|ies)|exploit(?:s|ed|ing)?"
    r"|corruption|data\s+(?:loss(?:es)?|leaks?|leakage)|incidents?|penetration|gdpr|hipaa|pci"
    r"|(?:non-?)?complian(?:ce|t)|regulat(?:ions?|ory)"
    r"|notf[aä]ll\w*|\w{0,20}ausf(?:all|ällen?)|datenschutzv(?:erletzung|orf[aä]ll)\w*|datenleck\w*|datenpanne\w*|sicherheitsl(?:ü|ue)cken?"
    r"|sicherheitsvorf[aä]ll\w*|datenverlust\w*|dsgvo|regulierung\w*"
    r"|panne|fuite de données|faille|vulnérabilité\w*|urgence|rgpd|conformité"
    r"|brechas? de (?:seguridad|datos)|vulnerabilidad\w*|emergencia|incidente|interrupción|cumplimiento"
    r"|violazione dei dati|vulnerabilità|emergenza|vulnerabilidade|conformidade|datalek\w*"
    r"|утечк\w*|уязвимост\w*|авари\w*|инцидент\w*|\u0441\u0431\u043e[йия]\w{0,2}"
    r"|violations? de données|fuga de datos|filtración de datos|caída (?:de producción|del? s\w{5,7})"
    r"|vazamentos? de dados|violação de dados|fuga di dati|vulnerabilit(?:ate\w{0,2}|ăți\w{0,3})"
    r"|wyciek\w{0,3}|awari\w{1,3}|luk\w{1,3} w zabezpieczeniach|podatnoś\w{1,3}"
    r"|säkerhets(?:brist|hål)\w{0,4}|sårbarhe[dt]\w{0,4}|data(?:läck|intrång|læk)\w{0,4}"
    r"|sikkerhe[dt]sbrudd?\w{0,3}|tieto(?:vuo|mur)\w{1,6}|haavoittuvuu\w{1,6}"
    r"|únik\w? dat|zraniteln\w{1,5}|bezpečnostní (?:chyb|díra|incident)\w{0,3}"
    r"|güvenlik aç\w{1,6}|veri s\u0131z\u0131nt\w{1,5}|lỗ hổng|rò rỉ dữ liệu|kebocoran data|kerentanan)\b"
    r"|ثغرة|ثغرات|تسريب|اختراق|פרצ[הת]|דליפ[הת]|भेद्यता|डेटा लीक"
    r"|漏洞|泄露|洩露|事故|故障|紧急|緊急|合规|脆弱性|漏えい|漏洩|システム障害|障害発生|취약점|유출|시스템 장애|장애 발생"
)
CRITICAL_CONTEXT: Final = _words("security", "production", "authentication", "authorization")
# In all their endings, since what is secured is meant where securing it is.
CRITICAL_ACTIONS: Final = _words(
    *(
        "fix(?:e[sd]|ing)?",
        "patch(?:e[sd]|ing)?",
        "investigat(?:e[sd]?|ing|ion)",
        "secur(?:e[sd]?|ing)",
    ),
    *("protect(?:s|ed|ing|ion)?", "mitigat(?:e[sd]?|ing|ion)", "prevent(?:s|ed|ing|ion)?"),
    *("respon(?:ds?|ded|ding|se)", "handl(?:e[sd]?|ing)"),
)
MONEY: Final = re.compile(
    r"\b(?:payments?|transactions?|billing|financial|zahlung\w*|paiements?|pagos?|pagament[oi]s?"
    r"|betaling\w*|płatno\w{1,4}|платеж\w{0,3})\b|支付|付款|決済|결제"
)
MONEY_ACTIONS: Final = re.compile(
    r"\b(?:encrypt(?:s|ed|ing|ion)?|secur(?:e[sd]?|ing)|protect(?:s|ed|ing|ion)?|audit(?:s|ed|ing)?"
    r"|verschlüssel\w*|chiffre[rz]|chiffré\w{0,2}|chiffrement|cifrar|cifrad[oa]s?|crittograf\w*"
    r"|criptograf\w*|versleutel\w*|szyfr\w*|шифр\w*)\b|加密|暗号化|암호화"
)
