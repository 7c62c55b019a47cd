"""Which words ask for all of a corpus, or for a quantity that needs all of it. Pure and linear.

English in full; of some thirty other languages the words that such questions are asked with. A word
that is missed costs an answer, one that is seen where it means nothing only costs a scan: in doubt it
counts. What is spelt alike and asks for nothing (`at all`, `all-hands`, `count on`) is taken out first.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["implies_completeness"]

_HYPHEN: Final = "[-\u2010\u2011]"
_IDIOMS: Final = re.compile(
    rf"\ball\s?{_HYPHEN}\s?\w+|\w{_HYPHEN}all\b|\ball\s+hands\b|\b(?:at|after|above|first\s+of)\s+all\b"
    r"|\ball\s+(?:right|along|of\s+a\s+sudden|the\s+same|in\s+all)\b|\bonce\s+and\s+for\s+all\b"
    r"|\bby\s+all\s+means\b|\beach\s+other\b|\bevery\s+now\s+and\s+then\b"
    r"|\bcount(?:s|ing)?\s+(?:up)?on\b"
)
_WHOLE: Final = r"(?:corpus|collection|archive|data\s?sets?|set\s+of|list|inventory)"
_ENGLISH: Final = re.compile(
    r"\b(?:all|every(?:one|body|thing)?|each|how\s+(?:many|much|often|frequently)|counts?|counting"
    r"|totals?|in\s+total|altogether|numbers?\s+of|enumerat(?:e|es|ed|ing)|exhaustive(?:ly)?"
    r"|complete(?:ly)?|sums?\s+(?:of|up)|summing\s+up|sum\s+the|add(?:ing)?\s+up|tally|averages?"
    r"|the\s+mean|mean\s+(?:of|value|amount|number|age|price|length|score)|median|per\s?cent(?:ages?)?"
    r"|(?:share|fraction|majority|minority)\s+of|proportions?|ratio|how\s+large\s+a\s+part"
    r"|distribution|histogram|break\s?down|most\s+(?:common|frequent(?:ly)?|often|of\s+the)|top\s+\d+"
    rf"|(?:full|whole|entire)\s+{_WHOLE}|across\s+the\s+{_WHOLE}|without\s+(?:any\s+)?exceptions?"
    r"|none\s+of\s+the(?:se|m)?|not\s+(?:a\s+single\s+)?one\s+of|duplicates|aggregate|(?:unique|distinct)\s+\w+s)\b"
    r"|\b(?:what|which)\s+%|%\s+of\b"
)
# What is written with blanks between words, in the Latin, Cyrillic and Greek scripts.
_SPACED: Final = (
    (r"wie\s*viele?|wie\s+(?:oft|h\u00e4ufig)|alle[rns]?|s\u00e4mtliche\w{0,2}|jede[rsnm]?|jegliche\w{0,2}|anzahl"
    r"|insgesamt|gesamt(?:e[nrs]?|zahl|summe|anzahl)|vollst\u00e4ndig\w{0,2}|durchschnitt\w{0,6}|prozent\w{0,6}"
    r"|anteil\s+(?:der|von|aller)|summe\s+(?:der|von|aller)|z\u00e4hle?n?|aufz\u00e4hl\w{0,4}|ausnahmslos"),
    (r"combien|tous|toutes|chaque|nombre\s+(?:total\s+)?(?:de|d)|totalit\u00e9|int\u00e9gralit\u00e9|pourcentage"
    r"|proportion|moyenne|sommes?\s+des|ensemble\s+des|exhausti(?:f|ve)s?|fr\u00e9quence|\u00e9num\u00e8re\w?"
    r"|\u00e9num\u00e9re[rz]|compte[rz]?\s+(?:les|le\s+nombre|combien)|liste\s+compl\u00e8te|sans\s+exception"),
    (r"cu[a\u00e1]nt[oa]s?|tod[oa]s|cada|porcentaje|promedio|suma\s+(?:de|total)|lista\s+completa"
    r"|frecuencia|cuent[ae]\s+(?:l[oa]s|cu)|enumer[ae]\w?|exhaustiv[oa]s?|sin\s+excepci\u00f3n"
    r"|n[u\u00fa]mero\s+(?:total\s+)?de(?!\s+(?:tel|fact|fat|s\u00e9rie|serie|cuenta|conta|contrat|pedido))"),
    (r"quant[oaie]s?|tutt[ie]|ogni|ciascun\w?|totale|percentuale|elenco\s+completo|complessiv\w{1,5}"
    r"|(?:media|somma)\s+(?:di|dei|degli|delle)|quante\s+volte|conta\s+(?:i|le|gli|quant\w)"
    r"|numero\s+(?:totale\s+)?d(?:i|ei|egli|elle)(?!\s+(?:tel|serie|conto|fatt|ordine))"),
    r"por?centagem|percentagem|m\u00e9dia|soma\s+d[eao]s?|frequ\u00eancia|conte\s+(?:os|as|quant)|sem\s+exce\u00e7\u00e3o",
    r"hoeveel|hoe\s+vaak|aantal|elke?|iedere?|totaal|percentage|gemiddeld\w?|volledige?|som\s+van",
    r"ile|wszystki\w{1,3}|wszyscy|ka\u017cd\w{1,4}|liczb[a\u0119y]|ilo\u015b\u0107|\u0142\u0105czn\w{1,3}|procent|\u015bredni\w{1,2}",
    r"kolik|kolk\u00e1t|v\u0161ech\w{0,3}|ka\u017ed\w{1,3}|po\u010det|ko\u013eko|v\u0161etk\w{1,3}|celkem|celkov\w{1,3}",
    (r"hur\s+(?:m\u00e5nga|mycket|ofta)|alla\s+(?:som|de|\w+(?:ar|or|er|en))|varje|samtliga|antal(?:et)?|totalt"
    r"|hvor\s+(?:mange|meget|mye|ofte)|hvert?|samtlige|antall(?:et)?|genomsnitt\w{0,3}|gennemsnit\w{0,3}"),
    r"kuinka\s+(?:monta|moni|paljon|usein)|kaikki|kaikkien|jokai\w{2,4}|lukum\u00e4\u00e4r\u00e4\w{0,2}",
    r"ka\u00e7|t\u00fcm\w{0,3}|b\u00fct\u00fcn|her\s+bir\w?|hepsi\w{0,3}|say\u0131s\u0131|toplam|h\u00e1ny|mennyi|\u00f6sszes|minden",
    r"c[\u00e2a]te|c\u00e2\u021bi|toate|to\u021bi|fiecare|num\u0103rul\s+(?:de|total)|berapa|semua|setiap|seluruh|jumlah",
    r"bao\s+nhi\u00eau|t\u1ea5t\s+c\u1ea3|m\u1ed7i|t\u1ed5ng\s+s\u1ed1",
    (r"\u0441\u043a\u043e\u043b\u044c\u043a\u043e|\u0432\u0441[\u0435\u0451](?:\u0445|\u043c|\u043c\u0438)?|\u0432\u0441\u0435\u0433\u043e|\u043a\u0430\u0436\u0434\w{2,3}|\u043a\u043e\u043b\u0438\u0447\u0435\u0441\u0442\u0432\w{1,2}|\u0447\u0438\u0441\u043b\u043e"
    r"|\u043f\u0440\u043e\u0446\u0435\u043d\u0442\w{0,2}|\u0434\u043e\u043b\u044f|\u0438\u0442\u043e\u0433\u043e|\u0432 \u0441\u0440\u0435\u0434\u043d\u0435\u043c|\u043f\u0435\u0440\u0435\u0447\u0438\u0441\u043b\w{1,4}"),
    r"\u0441\u043a\u0456\u043b\u044c\u043a\u0438|[\u0432\u0443]\u0441\u0456\u0445?|\u043a\u043e\u0436\u043d\w{1,3}|\u043a\u0456\u043b\u044c\u043a\u0456\u0441\u0442\u044c",
    r"\u03c0\u03cc\u03c3(?:\u03b1|\u03bf\u03b9|\u03b5\u03c2|\u03bf\u03c5\u03c2)|\u03cc\u03bb(?:\u03b1|\u03bf\u03b9|\u03b5\u03c2|\u03c9\u03bd|\u03bf\u03c5\u03c2)|\u03ba\u03ac\u03b8\u03b5|\u03c3\u03c5\u03bd\u03bf\u03bb\u03b9\u03ba\w{1,4}",
)  # fmt: skip
# Scripts whose signs are no letters to Python, so that words end at their own range: Arabic, Hebrew, Hindi.
_RANGED: Final = (
    (r"(?<![\u0600-\u06ff])[\u0648\u0628\u0644\u0641]?(?:\u0627\u0644)?(?:\u0643\u0645|\u0643\u0644|\u062c\u0645\u064a\u0639|\u0639\u062f\u062f|\u0625\u062c\u0645\u0627\u0644\u064a|\u0645\u062c\u0645\u0648\u0639|\u0646\u0633\u0628\u0629|\u0645\u062a\u0648\u0633\u0637"
    r"|\u0686\u0646\u062f|\u0647\u0645\u0647|\u062a\u0645\u0627\u0645|\u062a\u0639\u062f\u0627\u062f)(?![\u0600-\u06ff])"),
    r"(?<![\u0590-\u05ff])[\u05d4\u05d1\u05dc\u05e9\u05db\u05d5\u05de]?(?:\u05db\u05de\u05d4|\u05db\u05dc|\u05db\u05d5\u05dc\u05dd|\u05d0\u05d7\u05d5\u05d6)(?![\u0590-\u05ff])",
    r"(?<![\u0900-\u097f])(?:\u0915\u093f\u0924\u0928[\u0947\u0940\u093e]|\u0938\u092d\u0940|\u0938\u093e\u0930\u0947|\u0939\u0930|\u092a\u094d\u0930\u0924\u094d\u092f\u0947\u0915|\u0915\u0941\u0932|\u0938\u0902\u0916\u094d\u092f\u093e|\u092a\u094d\u0930\u0924\u093f\u0936\u0924)(?![\u0900-\u097f])",
)  # fmt: skip
# Scripts without blanks, and Korean, whose particles join their words.
_JOINED: Final = (
    (r"\u591a\u5c11|[\u51e0\u5e7e][\u4e2a\u500b\u6761\u689d\u4efd\u6b21\u5c01\u4f4d\u7bc7]|\u6240\u6709|\u5168\u90e8|\u5168\u4f53|\u6bcf[\u4e2a\u500b\u4e00\u6761\u689d\u4efd\u4f4d\u7bc7\u5c01]|[\u603b\u7e3d][\u6570\u6578\u5171\u8ba1\u8a08]|\u4e00\u5171|\u5171\u6709"
    r"|[\u7edf\u7d71][\u8ba1\u8a08]|[\u6570\u6578]\u91cf|\u767e\u5206[\u4e4b\u6bd4]|\u6bd4\u4f8b|\u5e73\u5747|\u9010[\u4e00\u6761]|\u5217[\u51fa\u4e3e\u8209]"),
    r"\u3044\u304f\u3064|\u3044\u304f\u3089|\u4f55[\u4ef6\u4eba\u500b\u56de\u901a\u679a\u672c\u793e\u540d]|\u3059\u3079\u3066|\u5168[\u3066\u4ef6\u54e1]|\u305c\u3093\u3076|\u305d\u308c\u305e\u308c|\u5408\u8a08|\u7dcf\u6570|\u4ef6\u6570|\u5272\u5408|\u4e00\u89a7",
    r"\uba87|\ubaa8\ub4e0|\ubaa8\ub450|\uc804\uccb4|\uc804\ubd80|\uac01\uac01|\uac1c\uc218|\uac74\uc218|\uc5bc\ub9c8\ub098|\ube44\uc728|\ud3c9\uade0|\ud569\uacc4|\ube60\uc9d0\uc5c6\uc774",
    r"\u0e01\u0e35\u0e48|\u0e17\u0e31\u0e49\u0e07\u0e2b\u0e21\u0e14|\u0e17\u0e38\u0e01|\u0e08\u0e33\u0e19\u0e27\u0e19|\u0e40\u0e17\u0e48\u0e32\u0e44(?:\u0e23|\u0e2b\u0e23\u0e48)",
)  # fmt: skip
_ELSEWHERE: Final = re.compile(rf"\b(?:{'|'.join(_SPACED)})\b")
_OTHER_SCRIPTS: Final = re.compile("|".join((*_RANGED, *_JOINED)))


def implies_completeness(text: object) -> bool:
    """Return whether a text asks for all records or for a quantity; False for what is no text.

    Linear in the length of the text. `planner.shapes.compiles_to_count` sees questions that need
    everything without such a word.

    Example:
        >>> implies_completeness("How many mails are about the all-hands?")
        True
        >>> implies_completeness("Who spoke at the all-hands?")
        False
    """
    if not isinstance(text, str):
        return False
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    plain = _IDIOMS.sub(
        " ", plain.lower()
    )  # a pattern that ignores case itself is three times slower
    if _ENGLISH.search(plain) or _ELSEWHERE.search(plain):
        return True
    return not plain.isascii() and _OTHER_SCRIPTS.search(plain) is not None
