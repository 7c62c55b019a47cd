"""What a command runs besides itself: behind `sudo`, in `find -exec`, as text after `sh -c`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import Final

from executors.gate.rules.programs import (
    AWKS,
    GIT_OPTIONS,
    RUNNING_OPTIONS,
    SHELLS,
    WRAPPERS,
    Wrapper,
    names,
    program,
)

__all__ = ["Begun", "Given", "Hidden", "Opaque", "bare", "is_assignment", "runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A command that its words are, from one to before another."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A script that stands in one of its words."""

    text: str
    doubtful: bool = False
    """It may be no script at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """It runs something, and nobody can say what."""

    why: str
    doubtful: bool = False
    """Only what might run something stands there, and mostly it does not."""


Hidden = Begun | Given | Opaque

_RESERVED: Final = names("{ } ! if then else elif fi do done while until")
_EXEC: Final = {
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir"}),
    "fd": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
    "fdfind": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
}
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_UNNAMED: Final = re.compile(r"[$*?\[{`]")
_AWK_MAY_RUN: Final = re.compile(r"system|\||getline|@load")
_AWK_RUNS: Final = re.compile(r"system\s*\(|\|\s*getline|@load")
_IN_QUOTES: Final = re.compile(r'"([^"]*)"')
_SED_RUNS: Final = re.compile(
    r"(?:^|[;{}\n0-9$/])\s*e(?:\s|$)|[^\w\s][gpiImM0-9]*e[gpiImM0-9]*(?:[;}\n]|$)"
)
_GIT_RUNS: Final = (("submodule", "foreach"), ("bisect", "run"), ("filter-branch", ""))
_MOST: Final = 64  # commands that one is said to run


def is_assignment(word: str) -> bool:
    """Return whether a word in front of a command gives a variable its value."""
    return _ASSIGNED.match(word) is not None


def bare(words: Sequence[str]) -> int:
    """Return where a command begins: after assignments, and words such as `then` and `!`."""
    at = 0
    while at < len(words) and (words[at] in _RESERVED or is_assignment(words[at])):
        at += 1
    return at


def runs(words: Sequence[str]) -> Iterator[Hidden]:
    """Go through what a command runs besides itself; its first word is the program.

    Words that come behind an option that is not known are taken both ways.
    """
    if not words:
        return
    name = program(words[0])
    if name in WRAPPERS:
        yield from _behind(words, WRAPPERS[name])
    if name in SHELLS:
        yield from _script(words)
    if name in _EXEC:
        yield from _executed(words, _EXEC[name])
    yield from _by_language(name, words)
    yield from _by_option(name, words)


def _by_language(name: str, words: Sequence[str]) -> Iterator[Hidden]:
    if name in AWKS:
        yield from _awk(words)
    elif name == "sed" and any(_SED_RUNS.search(word) for word in words[1:]):
        yield Opaque(why="sed has a command to run others", doubtful=True)
    elif name in ("eval", "watch") and len(words) > 1:
        rest = dropwhile(lambda word: word == name, words)
        yield Given(text=" ".join(rest), doubtful=name == "watch")
    elif name == "trap" and len(words) > 1:
        yield Given(text=words[1])
    elif name == "ssh" and len(words) > 2:
        yield Given(text=" ".join(words[2:]), doubtful=True)
    elif name == "env":
        yield from _split(words)
    elif _UNNAMED.search(words[0]):
        yield Opaque(why="its program is not named outright")


def _behind(words: Sequence[str], wrapper: Wrapper) -> Iterator[Hidden]:
    at, doubtful = 1, False
    while at < len(words):
        word = words[at]
        if word == "--":
            at, doubtful = at + 1, False
            break
        if word in wrapper.valued:
            at, doubtful = at + 2, False
        elif word.startswith("-") and len(word) > 1:
            at, doubtful = at + 1, True
        elif wrapper.assigns and is_assignment(word):
            at, doubtful = at + 1, False
        else:
            break
    at += wrapper.operands
    for start in (at, at + 1) if doubtful else (at,):
        if start < len(words):
            yield Begun(start=start, end=len(words))


def _script(words: Sequence[str]) -> Iterator[Hidden]:
    for at, word in enumerate(words[1:], 1):
        named = word in ("-c", "--command") or (
            word.startswith("-") and not word.startswith("--") and "c" in word
        )
        if named:
            yield from (
                Given(text=one) for one in words[at + 1 : at + 4] if one[:1] not in ("-", "+")
            )
            return
        if word.startswith("--command="):
            yield Given(text=word.partition("=")[2])
            return


def _executed(words: Sequence[str], options: frozenset[str]) -> Iterator[Hidden]:
    found = 0
    for at, word in enumerate(words):
        if word.partition("=")[0] not in options:
            continue
        found += 1
        if found > _MOST:
            yield Opaque(why="it runs more commands than anybody reads")
            return
        ends = (end for end in range(at + 1, len(words)) if words[end] in (";", "+"))
        yield Begun(start=at + 1, end=next(ends, len(words)))


def _awk(words: Sequence[str]) -> Iterator[Hidden]:
    for word in words[1:]:
        if word.startswith(("-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec")):
            yield Opaque(why="awk reads its program from a file", doubtful=True)
        elif _AWK_MAY_RUN.search(word):
            yield Opaque(why="awk runs other commands", doubtful=not _AWK_RUNS.search(word))
            texts = (found[1] for found in _IN_QUOTES.finditer(word))
            yield from (Given(text=one, doubtful=True) for one in islice(texts, _MOST))


def _split(words: Sequence[str]) -> Iterator[Hidden]:
    for at, word in enumerate(words[1:], 1):
        if word in ("-S", "--split-string"):
            yield from (Given(text=" ".join(words[at + 1 :])),)
        elif word.startswith(("-S", "--split-string=", "-vS", "-iS")):
            yield Given(text=word.partition("=")[2] if "=" in word else word.partition("S")[2])


def _by_option(name: str, words: Sequence[str]) -> Iterator[Hidden]:
    if name == "git":
        yield from _git(words)
    elif name in RUNNING_OPTIONS:
        yield from _valued(name, words[1:], RUNNING_OPTIONS[name])


def _git(words: Sequence[str]) -> Iterator[Hidden]:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    yield from _valued("git", words[1:at], GIT_OPTIONS[""])
    command = "".join(words[at : at + 1])
    yield from _valued("git", words[at + 1 :], GIT_OPTIONS.get(command, ""))
    runs_others = any(command == one and (other in words or not other) for one, other in _GIT_RUNS)
    if runs_others or any(word.startswith("ext::") for word in words):
        yield Opaque(why="git runs the command that it is given", doubtful=True)


def _valued(name: str, words: Sequence[str], options: str) -> Iterator[Hidden]:
    """Go through the values of options that are run, up to some of them."""
    known = options.split()
    found = 0
    for at, word in enumerate(words):
        if found > _MOST or not word.startswith("-") or not any(_means(word, one) for one in known):
            continue
        found += 1
        shown = word.partition("=")[0][:40]
        yield Opaque(why=f"{shown!r} says what {name} is to run", doubtful=True)
        following = "".join(words[at + 1 : at + 2])
        value = (
            f"{word.partition('=')[2]} "
            if "=" in word
            else following.partition("=")[2] or following
        )
        yield Given(text=value.lstrip("!"), doubtful=True)


def _means(word: str, option: str) -> bool:
    if not option.startswith("--"):
        return word.startswith(option) and not word.startswith("--")
    given = word.partition("=")[0]
    return len(given) > 4 and option.startswith(given)  # long ones may be cut short
