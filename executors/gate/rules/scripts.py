"""Scripts of sed and awk: what is proven to run nothing and to write nothing, and what may do so.

A script passes only where each of its letters was understood. Where seds differ, the reading that sees more
commands is taken, and what two of them would take apart in two ways is not proven.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Judged", "judged_awk", "judged_sed"]

_MOST: Final = 64  # scripts of one command
_PLAIN: Final = frozenset("=dDgGhHnNpPxzF")
_NUMBERED: Final = frozenset("lLqQ")
_LABELLED: Final = frozenset("btT:")
_FILES: Final = frozenset("rRwW")
_LABEL: Final = re.compile(r"[\w.-]*")
_DIGITS: Final = re.compile(r"[0-9]*")
_SED_FLAGS: Final = frozenset("nErsuz")
_SED_LONG: Final = frozenset(
    {
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--zero-terminated",
        "--posix",
        "--debug",
        "--sandbox",
        "--in-place",
        "--line-length",
        "--follow-symlinks",
        "--help",
        "--version",
    }
)
_AWK_OPTION: Final = re.compile(
    r"-|--|-[Fv].*|--(field-separator|assign)=.*|--(sandbox|posix|traditional|csv|version|help)|-S",
    re.DOTALL,
)
_AWK_RUNS: Final = re.compile(r"system|getline|[@|]")


@dataclass(slots=True, kw_only=True)
class Judged:
    """What a command's scripts do."""

    why: str | None = None
    """Why they are not proven harmless; None where they are."""
    runs: list[str] = field(default_factory=list[str])
    """Commands that they run, as far as they were seen."""


def judged_awk(words: Sequence[str]) -> Judged:
    """Judge the words after `awk`: its options wherever they stand, and the program."""
    program: str | None = None
    valued = False
    for word in words:
        if valued:
            valued = False
        elif word.startswith("-"):
            if not _AWK_OPTION.fullmatch(word):
                return Judged(why=f"awk's {word[:40]!r} is not known to be harmless")
            valued = word in ("-F", "-v")
        elif program is None:
            program = word
    if program is None:
        return Judged()
    if _AWK_RUNS.search(program.replace("||", "")):
        return Judged(why="awk can run other commands by this program")
    _, _, rest = program.partition("print")
    if ">" in rest:
        return Judged(why="awk can write to a file by this program")
    return Judged()


def judged_sed(words: Sequence[str]) -> Judged:
    """Judge the words after `sed`."""
    found = Judged()
    for text in _scripts(words, found):
        _Sed(text, found).run()
    return found


def _scripts(words: Sequence[str], found: Judged) -> list[str]:
    """Return the scripts that the words give, in all ways in which they may be read."""
    texts: list[str] = []
    ended = False
    at = 0
    while at < len(words):
        word, following = words[at], "".join(words[at + 1 : at + 2])
        at += 1
        if ended or not word.startswith("-") or word == "-":
            if not texts:  # else it is a file
                texts.append(word)
        elif word == "--":
            ended = True
        elif word.startswith("--"):
            at += _long(word, following, texts, found)
        else:
            at += _short(word, following, texts, found)
    if len(texts) > _MOST:
        found.why = "it holds more scripts than anybody reads"
    return texts[:_MOST]


def _long(word: str, following: str, texts: list[str], found: Judged) -> int:
    """Take a long option; return how many words its value is."""
    name, equals, value = word.partition("=")
    if len(name) > 2 and "--expression".startswith(name):
        texts.append(value if equals else following)
        return 0 if equals else 1
    if name not in _SED_LONG:
        found.why = f"sed's {word[:40]!r} is not known to be harmless"
    return 1 if word == "--line-length" else 0


def _short(word: str, following: str, texts: list[str], found: Judged) -> int:
    """Take short options that stand in one word; return how many words their value is."""
    for at, letter in enumerate(word[1:], 2):
        rest = word[at:]
        if letter == "e":
            texts.append(rest or following)
            return 0 if rest else 1
        if letter == "l":
            return 0 if rest else 1
        if letter == "i":  # the rest is how copies end
            if "e" in rest or "f" in rest:
                found.why = f"sed's {word[:40]!r} is read in two ways"
            return 0
        if letter not in _SED_FLAGS:
            found.why = f"sed's {word[:40]!r} is not known to be harmless"
            return 0
    return 0


class _Unproven(Exception):
    """What is not understood to the last letter."""


class _Sed:
    """One script, read once from its beginning to its end."""

    def __init__(self, text: str, found: Judged) -> None:
        self._text = text
        self._at = 0
        self._found = found

    def run(self) -> None:
        try:
            while self._skip(" \t\n;"):
                self._command()
        except _Unproven as why:
            self._found.why = f"its sed script is not known to be harmless: {why}"

    def _skip(self, chars: str) -> str:
        """Go on to what is none of these; return it, or "" at the end."""
        while self._at < len(self._text) and self._text[self._at] in chars:
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return char

    def _line(self) -> str:
        """Take the rest of the line."""
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        rest = self._text[self._at : end]
        self._at = end
        return rest

    def _runs(self, text: str) -> None:
        self._found.runs.append(text)
        self._found.why = "its sed script runs other commands"

    # ---------------------------------------------------------------- commands

    def _command(self) -> None:
        self._addresses()
        name = self._take()
        if name == "#":
            self._line()
        elif name == "s":
            self._substituted()
        elif name == "y":
            delimiter = self._delimiter()
            self._until(delimiter)
            self._until(delimiter)
            self._ended()
        elif name == "e":
            self._runs(self._line())
        elif name and name in "aic":
            text = self._line()
            if not text.strip() or text.endswith("\\"):
                raise _Unproven("a text goes on in another place")
        elif name != "{":
            self._simple(name)

    def _simple(self, name: str) -> None:
        if name in _FILES:
            raise _Unproven(f"{name!r} reads or writes a file")
        if name in _NUMBERED or name in _LABELLED:
            self._skip(" \t")
            shape = _LABEL if name in _LABELLED else _DIGITS
            found = shape.match(self._text, self._at)
            self._at = found.end() if found else self._at
        elif name not in _PLAIN and name != "}":
            raise _Unproven(f"{name!r} is no command that is known")
        self._ended()

    def _substituted(self) -> None:
        delimiter = self._delimiter()
        self._until(delimiter, pattern=True)
        start = self._at
        self._until(delimiter)
        replacement = self._text[start : self._at - 1]
        start = self._at
        if self._skip("gpiImMe0123456789") == "w":
            raise _Unproven("'w' writes a file")
        if "e" in self._text[start : self._at]:
            self._runs(replacement)
        self._ended()

    def _ended(self) -> None:
        if self._skip(" \t") not in ("", ";", "\n", "}", "#"):
            raise _Unproven("something stands after a command")

    # ---------------------------------------------------------------- addresses and what is between delimiters

    def _addresses(self) -> None:
        if self._address():
            if self._skip(" \t") == ",":
                self._at += 1
                if (char := self._skip(" \t")) and char in "+~":
                    self._at += 1
                    self._skip("0123456789")
                elif not self._address():
                    raise _Unproven("an address is missing")
            self._skip(" \t!")
        elif self._skip(" \t") == "!":
            self._skip(" \t!")

    def _address(self) -> bool:
        start = self._at
        if self._skip("0123456789") == "~" and self._at > start:
            self._at += 1
            self._skip("0123456789")
        char = self._text[self._at : self._at + 1]
        if self._at > start:
            return True
        if char == "$":
            self._at += 1
        elif char and char in "/\\":
            self._at += 1
            self._until("/" if char == "/" else self._delimiter(), pattern=True)
            self._skip("IM")
        return self._at > start

    def _delimiter(self) -> str:
        char = self._take()
        if not char or char in "\\\n[]^":
            raise _Unproven("a delimiter is missing, or odd")
        return char

    def _until(self, delimiter: str, *, pattern: bool = False) -> None:
        """Go behind the next delimiter."""
        while True:
            char = self._take()
            if not char or char == "\n":
                raise _Unproven("a delimiter is missing")
            if char == delimiter:
                return
            if char == "\\":
                if self._take() in ("", "\n"):
                    raise _Unproven("it goes on in another line")
            elif pattern and char == "[":
                self._brackets(delimiter)

    def _brackets(self, delimiter: str) -> None:
        """Go behind a set of characters, as long as seds agree where it ends."""
        if self._text.startswith("^", self._at):
            self._at += 1
        first = True
        while True:
            char, following = self._take(), self._text[self._at : self._at + 1]
            if char == "]" and not first:
                return
            first = False
            if char == "\\" and following and following not in "]\n":
                self._at += following == delimiter
            elif char == "[" and following and following in ":.=":
                end = self._text.find(f"{following}]", self._at + 1, self._at + 32)
                if end < 0 or delimiter in self._text[self._at : end]:
                    raise _Unproven("a set of characters does not end")
                self._at = end + 2
            elif not char or char in f"\\\n{delimiter}":
                raise _Unproven("a delimiter stands in brackets, which is read in two ways")
