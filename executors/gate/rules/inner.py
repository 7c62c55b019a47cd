"""What a command runs besides itself: behind `sudo`, in `find -exec`, as text after `sh -c`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import Final

from executors.gate.rules import gits
from executors.gate.rules.programs import (
    AWKS,
    EDITORS,
    GIT_OPTIONS,
    RUNNING_OPTIONS,
    SEPARATE,
    SHELLS,
    SWITCHERS,
    WRAPPERS,
    Wrapper,
    names,
    program,
)
from executors.gate.rules.scripts import judged_awk, judged_sed

__all__ = [
    "RESERVED",
    "Begun",
    "Given",
    "Hidden",
    "Opaque",
    "bare",
    "is_assignment",
    "runs",
    "shell_operand",
]


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
    upto: int | None = None
    """As with what is opaque: an entry of so many words knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """It runs something, and nobody can say what."""

    why: str
    doubtful: bool = False
    """Only what might run something stands there, and mostly it does not."""
    upto: int | None = None
    """Whoever allows the words up to this one knows what they run; None: nobody does."""


Hidden = Begun | Given | Opaque

RESERVED: Final = names("{ } ! if then else elif fi do done while until")
"""Words that stand in front of a command, and are none."""
_FIND_EXEC: Final = names("-exec -execdir -ok -okdir")
_FDS: Final = names("fd fdfind")
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_UNNAMED: Final = re.compile(r"[$*?\[{`]")
_AWK_RUNS: Final = re.compile(r"system\s*\(|\|\s*getline|@load")
_IN_QUOTES: Final = re.compile(r'"([^"]*)"')
_GIT_RUNS: Final = {
    "submodule": names("foreach"),
    "bisect": names("run visualize view"),
}
_MOST: Final = 64  # commands that one is said to run
_STARTS: Final = 8  # places where a command may begin behind options that are not known
_SSH: Final = Wrapper(
    valued=names("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"),
    flags=frozenset("46AaCfGgKkMNnqsTtVvXxYy"),
    operands=1,
)
_SUBSCRIPTS: Final = names("test [ printf read unset wait")
_VALUED_OF_SHELLS: Final = names("--rcfile --init-file")


def is_assignment(word: str) -> bool:
    """Return whether a word in front of a command gives a variable its value."""
    return _ASSIGNED.match(word) is not None


def bare(words: Sequence[str]) -> int:
    """Return where a command begins: after assignments, and words such as `then` and `!`."""
    at = 0
    while at < len(words) and (words[at] in RESERVED or is_assignment(words[at])):
        at += 1
    if words[at : at + 1] == ["function"]:  # its name, and then what it does
        return at + 2 + bare(words[at + 2 : at + 4])
    return at


def runs(words: Sequence[str]) -> Iterator[Hidden]:
    """Go through what a command runs besides itself; its first word is the program.

    Words that come behind an option that is not known are taken both ways.
    """
    if not words:
        return
    name = program(words[0])
    if name in WRAPPERS:
        yield from _wrapped(name, words, WRAPPERS[name])
    if name in SHELLS:
        yield from _script(words, switches=name in SWITCHERS)
    if name == "find":
        yield from _executed(words)
    elif name in _FDS:
        yield from _found(words)
    yield from _by_language(name, words)
    yield from _by_operand(name, words)
    yield from _by_option(name, words)


def _by_operand(name: str, words: Sequence[str]) -> Iterator[Hidden]:
    if name in _SUBSCRIPTS and any("[" in one and ("$(" in one or "`" in one) for one in words):
        yield Opaque(why="a subscript holds a command", doubtful=True)
    elif name == "ip":
        yield from _ip(words)
    elif name == "cmake" and "-E" in words[1:2]:
        yield Begun(start=2, end=len(words))
    elif name == "socat" and any(
        one.lower().startswith(("exec", "system", "shell")) for one in words
    ):
        yield Opaque(why="socat runs a program", doubtful=True)


def _by_language(name: str, words: Sequence[str]) -> Iterator[Hidden]:
    if name in AWKS:
        yield from _awk(words)
    elif name == "sed":
        yield from _sed(words)
    elif name == "eval" and len(words) > 1:
        rest = list(dropwhile(lambda word: word == name, words))
        yield Given(text=" ".join(rest[1:] if rest[:1] == ["--"] else rest))
    elif name == "trap" and len(words) > 1:
        yield Given(text="".join(words[2:3]) if words[1] == "--" else words[1])
    elif name == "alias":
        values = (word.partition("=")[2] for word in words[1:] if "=" in word)
        yield from (Given(text=one, doubtful=True) for one in islice(values, _MOST))
    elif name == "ssh":
        for start in _starts(words, _SSH):
            yield Given(text=" ".join(words[start:]), doubtful=True)
    elif _UNNAMED.search(words[0]):
        yield Opaque(why="its program is not named outright")


# ---------------------------------------------------------------- commands behind others


def _wrapped(name: str, words: Sequence[str], wrapper: Wrapper) -> Iterator[Hidden]:
    for start in _starts(words, wrapper):
        if start < len(words):
            yield Begun(start=start, end=len(words))
        if name in ("watch", "parallel", "hyperfine") and start < len(words):
            yield Given(text=" ".join(words[start:]), doubtful=True)
    if name == "coproc" and words[2:3] == ["{"]:  # behind a name
        yield Begun(start=2, end=len(words))
    if name == "env":
        yield from _split(words)


def _starts(words: Sequence[str], wrapper: Wrapper) -> list[int]:
    """Return where the command may begin: options that are not known are taken both ways."""
    found: list[int] = []
    at, doubtful = 1, wrapper.optional
    while at < len(words) and len(found) < _STARTS:
        word = words[at]
        if word == "--":
            found.append(at + 1 + wrapper.operands)
            break
        if word.startswith("-"):
            width, doubtful = _width(word, wrapper)
            at += width
        elif wrapper.assigns and is_assignment(word):
            at, doubtful = at + 1, False
        else:
            found.append(at + wrapper.operands)
            if not doubtful:
                break
            at, doubtful = at + 1, False
    return found


def _width(word: str, wrapper: Wrapper) -> tuple[int, bool]:
    """Return how many words an option takes, and whether nobody knows."""
    if word in wrapper.valued:
        return 2, False
    if word.startswith("--"):
        return 1, "=" not in word
    for at, letter in enumerate(word[1:], 2):
        if f"-{letter}" in wrapper.valued:
            return (2 if at == len(word) else 1), False
        if letter not in wrapper.flags:
            return 1, True
    return 1, False


def shell_operand(words: Sequence[str]) -> tuple[int, str]:
    """Return where the first operand of a shell stands, and the letters of the options before it."""
    at, letters = 1, ""
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        word = words[at]
        bundle = "" if word.startswith("--") else word[1:]
        letters += bundle if word.startswith("-") else ""
        at += 2 if word in _VALUED_OF_SHELLS or bundle[-1:] in ("o", "O") else 1
    return at + (words[at : at + 1] == ["--"]), letters


def _script(words: Sequence[str], *, switches: bool) -> Iterator[Hidden]:
    for at, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            if len(name) > 3 and any(
                one.startswith(name) for one in ("--command", "--commands", "--session-command")
            ):
                yield Given(text=value if equals else "".join(words[at + 1 : at + 2]))
                return
        elif word.startswith("-") and "c" in word:
            if switches:
                yield Given(text=word.partition("c")[2] or "".join(words[at + 1 : at + 2]))
            else:
                start, _ = shell_operand(words[at - 1 :])
                yield from (Given(text=one) for one in words[at - 1 + start : at + start])
            return
    if program(words[0]) == "sg":
        yield Given(text=" ".join(words[2:]))


def _executed(words: Sequence[str]) -> Iterator[Hidden]:
    found = 0
    for at, word in enumerate(words):
        if word not in _FIND_EXEC:
            continue
        found += 1
        if found > _MOST:
            yield Opaque(why="it runs more commands than anybody reads")
            return
        ends = (
            end
            for end in range(at + 1, len(words))
            if words[end] == ";" or (words[end] == "+" and words[end - 1] == "{}")
        )
        yield Begun(start=at + 1, end=next(ends, len(words)))


def _found(words: Sequence[str]) -> Iterator[Hidden]:
    """Go through what fd runs: all that follows."""
    for at, word in enumerate(words[1:], 1):
        if word.startswith("--exec"):
            value = word.partition("=")[2]
        elif word.startswith("-") and not word.startswith("--") and ("x" in word or "X" in word):
            value = re.split("[xX]", word, maxsplit=1)[1]
        else:
            continue
        if value:
            yield Opaque(why="fd runs other commands", doubtful=True)
            yield Given(text=" ".join([value, *words[at + 1 :]]), doubtful=True)
        else:
            yield Begun(start=at + 1, end=len(words))
        return


def _ip(words: Sequence[str]) -> Iterator[Hidden]:
    """Go through what `ip netns exec NAME` and `ip vrf exec NAME` run; words may be cut short."""
    for at, word in enumerate(words[1:-1], 1):
        if word and ("netns".startswith(word) or "vrf".startswith(word)):
            following = words[at + 1]
            if following and "exec".startswith(following):
                for start in (at + 2, at + 3):
                    yield Begun(start=start, end=len(words))
                return


# ---------------------------------------------------------------- scripts of their own languages


def _awk(words: Sequence[str]) -> Iterator[Hidden]:
    judged = judged_awk(words[1:])
    if judged.why is None:
        return
    yield Opaque(why=judged.why, doubtful=True, upto=len(words))
    for word in words[1:]:
        if _AWK_RUNS.search(word):
            yield Opaque(why="awk runs other commands", upto=len(words))
        texts = (found[1] for found in _IN_QUOTES.finditer(word))
        for text in islice(texts, _MOST):
            yield Given(text=text, doubtful=True, upto=len(words))


def _sed(words: Sequence[str]) -> Iterator[Hidden]:
    judged = judged_sed(words[1:])
    if judged.why is not None:
        yield Opaque(why=judged.why, doubtful=True, upto=len(words))
    for text in islice(judged.runs, _MOST):
        yield Given(text=text, doubtful=True, upto=len(words))


def _split(words: Sequence[str]) -> Iterator[Hidden]:
    for at, word in enumerate(words[1:], 1):
        name, _, value = word.partition("=")
        if word.startswith("--"):
            if len(name) < 4 or not "--split-string".startswith(name):
                continue
        elif word.startswith("-") and "S" in word:
            value = word.partition("S")[2]
        else:
            continue
        yield Given(text=" ".join([value, *words[at + 1 :]]))
        return


# ---------------------------------------------------------------- options whose value is run


def _by_option(name: str, words: Sequence[str]) -> Iterator[Hidden]:
    if name == "git":
        yield from _git(words)
    elif name in RUNNING_OPTIONS:
        if name in ("tar", "bsdtar"):
            yield from _tar(words)
        yield from _valued(name, words[1:], RUNNING_OPTIONS[name])


def _tar(words: Sequence[str]) -> Iterator[Hidden]:
    """Go through what tar's letters without a dash run, and archives on other machines."""
    if words[1:] and not words[1].startswith("-"):
        yield from _valued("tar", [f"-{words[1]}", *words[2:5]], RUNNING_OPTIONS["tar"])
    if any(":" in word.partition("/")[0] for word in words[1:] if not word.startswith("--")):
        yield Opaque(
            why="tar asks another program for an archive whose name has a colon", doubtful=True
        )


def _git(words: Sequence[str]) -> Iterator[Hidden]:
    at = gits.subcommand_at(words)
    if (why := gits.unproven_words(words[1:at])) is not None:
        yield Opaque(why=why, doubtful=True, upto=at)
    yield from _valued("git", words[1:at], GIT_OPTIONS[""])
    if at >= len(words):
        return
    command, rest = words[at], words[at + 1 :]
    if command not in gits.KNOWN:
        yield Opaque(
            why=f"git {command[:40]!r} may be an alias, or runs others", doubtful=True, upto=at + 1
        )
    if command == "config" and (why := gits.unproven_setting(rest)) is not None:
        yield Opaque(why=why, doubtful=True, upto=len(words))
        text = "".join(rest[-1:]).lstrip("!")
        yield Given(text=text, doubtful=True, upto=len(words))
    yield from _valued("git", rest, GIT_OPTIONS.get(command, ""))
    for other in _GIT_RUNS.get(command, ()):
        if other in rest:
            yield Opaque(why=f"git {command} runs the command that it is given", doubtful=True)
            behind = dropwhile(lambda word: word.startswith("-"), rest[rest.index(other) + 1 :])
            yield Given(text=" ".join(behind), doubtful=True)
    if any("ext::" in word for word in words):
        yield Opaque(why="git runs the command that an address holds", doubtful=True)


def _valued(name: str, words: Sequence[str], options: str) -> Iterator[Hidden]:
    """Go through the values of options that are run, up to some of them."""
    known = options.split()
    bundles = name not in SEPARATE
    found = 0
    for at, word in enumerate(words):
        if found > _MOST or word[:1] not in ("-", "+", "@"):
            continue
        option = next((one for one in known if _means(word, one, bundles=bundles)), None)
        if option is None:
            continue
        found += 1
        shown = word.partition("=")[0][:40]
        yield Opaque(why=f"{shown!r} says what {name} is to run", doubtful=True)
        for value in _values(word, option, words[at + 1 : at + 4]):
            if name in EDITORS or option == "+":
                yield Given(text=value.partition("!")[2], doubtful=True)
            else:
                yield Given(text=_unassigned(value).lstrip("!"), doubtful=True)


def _values(word: str, option: str, following: Sequence[str]) -> Iterator[str]:
    """Go through the texts that an option may run."""
    if option in ("+", "@"):
        yield word[1:]
    elif option.startswith("--") or len(option) > 2:
        yield word.partition("=")[2] if "=" in word else "".join(following[:1])
    else:
        if (attached := word.partition(option[1])[2]) and not attached.isalpha():
            yield attached
        yield from following[: 1 if len(word) < 3 else 3]


def _unassigned(value: str) -> str:
    """Return what is set to a name, where one is set."""
    name, _, rest = value.partition("=")
    return rest if rest and re.fullmatch(r"[\w.-]+", name) else value


def _means(word: str, option: str, *, bundles: bool) -> bool:
    if option.startswith("--"):
        given = word.partition("=")[0]
        return len(given) > 2 and option.startswith(given)  # long ones may be cut short
    if bundles and len(option) == 2 and option[0] == "-":
        return word.startswith("-") and not word.startswith("--") and option[1] in word
    return word.startswith(option)
