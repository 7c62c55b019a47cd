"""A command line as a POSIX shell takes it apart: commands, their words, and what is substituted.

One pass over the text, in linear time, whatever it holds. Where shells differ, or a text says two things at
once, nothing is guessed: it cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["SUBSTITUTED", "Command", "Script", "given_as_list", "read"]

SUBSTITUTED: Final = "$(…)"
"""Stands in a word for what a command prints."""
_BLANKS: Final = " \t"  # of a shell; a no-break space is part of a word
_OPERATORS: Final = ("<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">")
_SEPARATORS: Final = ("&&", "||", ";;", "|&", "|", "&", ";", "\n")
_NAMING: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789@*#?$!-{[(\"'"
)
_DEEPEST: Final = 200  # brackets in brackets

_OPENING: Final = frozenset({"{", "if", "while", "until", "for", "case", "select"})
_CLOSING: Final = frozenset({"}", "fi", "done", "esac"})
_LEADING: Final = _OPENING | _CLOSING | {"!", "then", "else", "elif", "do", "time", "coproc"}

Inside = Literal["top", "group", "substitution", "backquotes"]


@dataclass(slots=True, kw_only=True, eq=False)
class Command:
    """One simple command."""

    words: list[str] = field(default_factory=list[str])
    """Without their quotes; expansions stand as they are written."""
    targets: list[str] = field(default_factory=list[str])
    """What its output is written to."""
    appended: list[str] = field(default_factory=list[str])
    """Those of them that keep what they hold."""
    fed: list[str] = field(default_factory=list[str])
    """Texts that it reads from its input."""
    within: list[Command] = field(default_factory=list["Command"])
    """Commands whose output becomes part of it."""
    source: Command | None = None
    """What it reads from, by a pipe: its own, or that of the list, loop or condition it stands in."""
    body: str = ""
    """The function in whose text it stands."""
    background: bool = False
    """Nobody waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a text holds."""

    commands: tuple[Command, ...]
    """All of them, the substituted ones too, in the order in which they end."""
    functions: frozenset[str]
    """Names that the text gives to commands of its own."""
    meta: bool
    """A shell would do more than to run one command with these very words."""
    error: str | None
    """Why the text cannot be read to its end; None where it can."""


def given_as_list(argv: Sequence[str]) -> Script:
    """Return the command that a list is; no shell reads it, and every character is itself."""
    command = Command(words=list(argv))
    return Script(commands=(command,), functions=frozenset(), meta=False, error=None)


def read(text: str) -> Script:
    """Take a command line apart."""
    reader = _Reader(text)
    error: str | None = None
    try:
        reader.run()
    except _Unreadable as why:
        error = str(why)
        reader.abandon()
    return Script(
        commands=tuple(reader.done),
        functions=frozenset(reader.functions),
        meta=reader.meta,
        error=error,
    )


class _Unreadable(Exception):
    """A text that is no command line, or more than one."""


@dataclass(slots=True, eq=False)
class _Frame:
    """A command that is being read, and those before it in the same brackets."""

    inside: Inside
    quoted: bool = False
    """Between double quotes."""
    command: Command = field(default_factory=Command)
    word: list[str] | None = None
    braced: bool = False
    """The word holds a brace that is not quoted."""
    operator: str = ""
    """The word belongs to this redirection."""
    literal: bool = False
    """The word is quoted somewhere."""
    finished: list[Command] = field(default_factory=list[Command])
    outer: list[tuple[Command | None, str]] = field(
        default_factory=list[tuple[Command | None, str]]
    )
    """What the loops, lists and conditions read from that are open, and the functions they are."""
    named: str = ""
    """The function whose text comes next."""

    @property
    def around(self) -> tuple[Command | None, str]:
        """What a command here reads from unless a pipe says otherwise, and the function it is in."""
        return self.outer[-1] if self.outer else (None, "")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._stack = [_Frame("top")]
        self._backquotes = 0
        self._documents: list[tuple[Command, str, bool, bool]] = []
        self.done: list[Command] = []
        self.functions: set[str] = set()
        self.meta = False

    def run(self) -> None:
        text = self._text
        while self._at < len(text):
            frame = self._stack[-1]
            if frame.quoted:
                self._quoted(frame, text[self._at])
            else:
                self._plain(frame, text[self._at])
        if len(self._stack) > 1:
            raise _Unreadable("a bracket or a backquote is not closed")
        if self._stack[0].quoted:
            raise _Unreadable("a quote is not closed")
        self._end_command(self._stack[0], piped=False)
        if self._documents:
            raise _Unreadable("a here-document does not begin")

    def abandon(self) -> None:
        """Keep what was read so far."""
        self.meta = self.meta or len(self._stack) > 1
        for frame in reversed(self._stack):
            self._end_command(frame, piped=False)

    # ---------------------------------------------------------------- between double quotes, and elsewhere

    def _quoted(self, frame: _Frame, char: str) -> None:
        if char == '"':
            frame.quoted = False
            self._at += 1
        elif char == "\\":
            following = self._next(1)
            if following == "`" and self._backquotes:
                raise _Unreadable("backquotes stand in backquotes")
            self._add(frame, following if following in '$`"\\' else f"\\{following}", 2)
        elif not self._expanded(frame, char):
            self._add(frame, char, 1)

    def _plain(self, frame: _Frame, char: str) -> None:
        if char in _BLANKS:
            self._end_word(frame)
            self._at += 1
        elif char == "'":
            self._single(frame)
        elif char == '"':
            frame.quoted = frame.literal = True
            self._add(frame, "", 1)
        elif char == "\\":
            self._escaped(frame)
        elif char in "<>":
            self._redirected(frame)
        elif char in "()":
            self._bracketed(frame, char)
        elif char in "|&;\n":
            self._separated(frame)
        elif char == "#" and frame.word is None:
            self._comment()
        elif not self._expanded(frame, char):
            frame.braced = frame.braced or char == "{"
            self._add(frame, char, 1)

    def _single(self, frame: _Frame) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise _Unreadable("a quote is not closed")
        between = self._text[self._at + 1 : end]
        if self._backquotes and "`" in between:
            raise _Unreadable("a backquote stands in quotes that stand in backquotes")
        frame.literal = True
        self._add(frame, between, end + 1 - self._at)

    def _escaped(self, frame: _Frame) -> None:
        following = self._next(1)
        if not following:
            raise _Unreadable("it ends in a backslash")
        if following == "`" and self._backquotes:
            raise _Unreadable("backquotes stand in backquotes")
        if following == "\n":  # the line goes on
            self.meta = True
            self._at += 2
            return
        frame.literal = True
        self._add(frame, following, 2)

    def _comment(self) -> None:
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        if self._backquotes and "`" in self._text[self._at : end]:
            raise _Unreadable("a comment stands in backquotes")
        self._at = end

    # ---------------------------------------------------------------- expansions and brackets

    def _expanded(self, frame: _Frame, char: str) -> bool:
        """Go into a substitution, or out of one; return whether this was the place."""
        if char == "`":
            self.meta = True
            if frame.inside == "backquotes":
                self._leave(frame)
            elif self._backquotes:
                raise _Unreadable("backquotes stand in backquotes")
            else:
                self._backquotes += 1
                self._enter(frame, "backquotes", 1)
            return True
        if char != "$":
            return False
        following = self._next(1)
        self.meta = self.meta or following in _NAMING
        if following == "(":
            self._enter(frame, "substitution", 2)
            return True
        if following == "'" and not frame.quoted:
            end = self._text.find("'", self._at + 2)
            if "\\" in self._text[self._at + 2 : end]:
                raise _Unreadable("quotes with $ hold codes of characters")
        if following and following in "'\"" and not frame.quoted:
            self._at += 1  # the quotes come next
            return True
        return False

    def _bracketed(self, frame: _Frame, char: str) -> None:
        self.meta = True
        if char == "(":
            named = "".join(frame.word or ()) if self._next(1) == ")" else ""
            source = frame.command.source
            self._end_command(frame, piped=False)
            self._enter(frame, "group", 1)
            self._around(self._stack[-1], source, frame.named or frame.around[1])
            frame.named = named
            self.functions.update([named] if named else ())
        elif frame.inside in ("group", "substitution"):
            self._leave(frame)
        else:  # of a `case`
            self._end_command(frame, piped=False)
            self._at += 1

    def _enter(self, frame: _Frame, inside: Inside, length: int) -> None:
        if len(self._stack) >= _DEEPEST:
            raise _Unreadable("brackets are nested too deeply")
        if inside != "group":
            self._add(frame, SUBSTITUTED, 0)
        self._stack.append(_Frame(inside))
        self._around(self._stack[-1], None, frame.around[1])
        self._at += length

    def _around(self, frame: _Frame, source: Command | None, body: str) -> None:
        """Let all that comes in a frame read from a source, and be of a function's text."""
        frame.outer = [(source, body)]
        frame.command.source, frame.command.body = source, body

    def _leave(self, frame: _Frame) -> None:
        self._end_command(frame, piped=False)
        if frame.quoted:
            raise _Unreadable("a quote is not closed")
        self._stack.pop()
        self._at += 1
        outer = self._stack[-1]
        if any("case" in one.words[:3] for one in frame.finished):
            raise _Unreadable("a case stands in brackets")  # its own brackets have no partner
        self._backquotes -= frame.inside == "backquotes"
        if frame.inside == "group":
            outer.finished.extend(frame.finished)
        else:
            outer.command.within.extend(frame.finished)

    # ---------------------------------------------------------------- redirections and separators

    def _redirected(self, frame: _Frame) -> None:
        self.meta = True
        if self._text.startswith(("<(", ">("), self._at):
            written = self._text[self._at] == ">"
            self._enter(frame, "substitution", 2)
            if written:
                self._around(self._stack[-1], frame.command, frame.around[1])
            return
        if frame.word is not None and "".join(frame.word).isdigit():
            frame.word = None  # of a file that is open, as in 2>
        self._end_word(frame)
        operator = next(one for one in _OPERATORS if self._text.startswith(one, self._at))
        if operator in ("<<", "<<-") and len(self._stack) > 1:
            raise _Unreadable("a here-document stands in brackets")
        frame.operator = operator
        self._at += len(operator)

    def _separated(self, frame: _Frame) -> None:
        self.meta = True
        separator = next(one for one in _SEPARATORS if self._text.startswith(one, self._at))
        waits = separator == "\n" and frame.word is None and not frame.command.words
        if not waits or frame.command.source is None:  # else the pipe goes on in the next line
            piped = separator in ("|", "|&")
            self._end_command(frame, piped=piped, background=separator == "&")
        self._at += len(separator)
        if separator == "\n" and self._documents:
            self._read_documents()

    def _read_documents(self) -> None:
        """Read the texts that stand on the lines after their command."""
        documents, self._documents = self._documents, []
        for command, end, literal, tabs in documents:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    raise _Unreadable("a here-document does not end")
                line, _, _ = self._text[self._at : self._line_end()].partition("\n")
                self._at = self._line_end() + 1
                line = line.lstrip("\t") if tabs else line
                if line == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            if not literal and ("$(" in body or "`" in body or "\\" in body):
                raise _Unreadable("a here-document holds substitutions")
            command.fed.append(body)

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    # ---------------------------------------------------------------- words and commands

    def _next(self, ahead: int) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _add(self, frame: _Frame, text: str, length: int) -> None:
        if frame.word is None:
            frame.word = []
        frame.word.append(text)
        self._at += length

    def _end_word(self, frame: _Frame) -> None:
        if frame.word is None:
            return
        word = "".join(frame.word)
        operator, literal = frame.operator, frame.literal
        # Braces make several words of one, and a command of a single word.
        self.meta = self.meta or (frame.braced and ("," in word or ".." in word))
        frame.word, frame.operator, frame.literal, frame.braced = None, "", False, False
        if not operator:
            frame.command.words.append(word)
        elif operator.startswith(">") or operator == "<>":
            frame.command.targets.append(word)
            if operator == ">>":
                frame.command.appended.append(word)
        elif operator == "<<<":
            frame.command.fed.append(word)
        elif operator in ("<<", "<<-"):
            self._documents.append((frame.command, word, literal, operator == "<<-"))

    def _end_command(self, frame: _Frame, *, piped: bool, background: bool = False) -> None:
        self._end_word(frame)
        frame.operator = ""
        ended = frame.command
        ended.background = background
        self._compounds(frame, ended)
        source, body = frame.around
        frame.command = Command(source=ended if piped else source, body=body)
        if ended.words or ended.targets or ended.within or ended.fed:
            frame.finished.append(ended)
            self.done.append(ended)

    def _compounds(self, frame: _Frame, ended: Command) -> None:
        """Keep what loops, lists and conditions read from, from where they begin to where they end."""
        words = iter(ended.words)
        for word in words:
            if word == "function":
                frame.named = next(words, "")
                self.functions.update([frame.named] if frame.named else ())
            elif word in _OPENING:
                frame.outer.append((ended.source, frame.named or frame.around[1]))
                frame.named = ""
                ended.body = frame.around[1]
            elif word in _CLOSING and len(frame.outer) > (frame.inside != "top"):
                frame.outer.pop()
            if word not in _LEADING and word != "function":
                return
