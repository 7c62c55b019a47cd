"""WordPiece: text to the token ids that BERT-like encoders read.

The procedure is the published one of uncased BERT: strip accents, lower the case, split at white
space and punctuation, then take the longest known piece from the left of each word. It lives here
because the library that does it brings a client of a model hub and a second HTTP stack along.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from executors.errors import ConfigError

__all__ = ["VOCABULARY", "VOCABULARY_SHA256", "WordPiece", "read_vocabulary"]

VOCABULARY: Final = Path(__file__).parent / "vocabulary" / "bert-uncased.txt"
VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

_LONGEST_WORD: Final = 100  # characters; longer words are unknown by definition
_KEPT_WORDS: Final = 50_000
_DROPPED: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Mn"})
_IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""Blocks of Chinese characters that stand alone, as uncased BERT lists them."""


class _Folding(dict[int, str]):
    """What becomes of each character, found out once: dropped, lowered, or set apart by spaces."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold(chr(code))
        return folded


class WordPiece:
    """Turns text into ids of a vocabulary. Threads may share one."""

    def __init__(self, vocabulary: Mapping[str, int], *, max_tokens: int) -> None:
        """Take a vocabulary that has [UNK], [CLS] and [SEP].

        Args:
            max_tokens: of the result, the two marks at its ends included.
        """
        self._pieces = dict(vocabulary)
        self._unknown = [vocabulary["[UNK]"]]
        self._start, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._room = max_tokens - 2
        self._folding = _Folding()
        self._words: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return [CLS], the ids of the text's pieces as far as there is room, and [SEP]."""
        found: list[int] = []
        for word in unicodedata.normalize("NFD", text).translate(self._folding).split():
            found += self._word(word)
            if len(found) >= self._room:
                break
        return [self._start, *found[: self._room], self._end]

    def _word(self, word: str) -> list[int]:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= _KEPT_WORDS:  # a corpus of random strings must not fill memory
                self._words.clear()
            known = self._words[word] = self._split(word)
        return known

    def _split(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return self._unknown
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._pieces.get(prefix + word[start:end])
                if piece is not None:
                    ids.append(piece)
                    start = end
                    break
            else:
                return self._unknown
        return ids


def read_vocabulary(path: Path = VOCABULARY, *, digest: str = VOCABULARY_SHA256) -> dict[str, int]:
    """Return piece -> id of a vocabulary file with one piece a line.

    Raises:
        ConfigError: the file is not the one with that SHA-256.
    """
    raw = path.read_bytes()
    if (found := sha256(raw).hexdigest()) != digest:
        raise ConfigError(
            f"the vocabulary has SHA-256 {found!r}, expected {digest!r}",
            where=str(path),
            hint="install rlm-recurse again",
        )
    return {piece: index for index, piece in enumerate(raw.decode("utf-8").splitlines())}


def _fold(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\t\n\r" or category.startswith("Z"):
        return " "
    if category in _DROPPED or char == "\ufffd":
        return ""
    if category.startswith("P") or char in string.punctuation or _is_ideograph(char):
        return f" {char} "
    return char.lower()


def _is_ideograph(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _IDEOGRAPHS)
