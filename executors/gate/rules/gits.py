"""What git runs by its own commands and settings, and which of them are known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from executors.gate.rules.programs import names

__all__ = ["KNOWN", "subcommand_at", "unproven_setting", "unproven_words"]

KNOWN: Final = names(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore "
    "check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone commit "
    "commit-graph commit-tree config count-objects describe diff diff-files diff-index diff-tree fetch "
    "for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object init log ls-files ls-remote "
    "ls-tree merge merge-base merge-tree mktag mktree mv name-rev notes pack-objects pack-refs patch-id "
    "prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace rerere reset "
    "restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout "
    "stage stash status stripspace submodule switch symbolic-ref tag unpack-objects update-index "
    "update-ref var verify-commit verify-pack verify-tag version whatchanged worktree write-tree"
)
"""Commands of git's own that run nothing but git, hooks and what its settings say.

Whatever else stands there is an alias, a program of that name, or a command that runs what it is given.
"""

_VALUED: Final = names(
    "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source"
)
_FLAGS: Final = names(
    "-p -P -h -v --paginate --no-pager --no-replace-objects --bare --literal-pathspecs --glob-pathspecs "
    "--noglob-pathspecs --icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --help "
    "--version --exec-path --html-path --man-path --info-path"
)
_GIVEN: Final = ("--namespace=", "--attr-source=", "--list-cmds=")
_ELSEWHERE: Final = ("--git-dir", "--work-tree")  # other settings, or files written over them
_SETTINGS: Final = re.compile(
    r"user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|"
    r"push\.(default|autosetupremote|followtags)|fetch\.(prune|prunetags|parallel)|"
    r"rebase\.(autostash|autosquash|updaterefs)|merge\.(ff|conflictstyle|stat)|"
    r"core\.(autocrlf|eol|filemode|ignorecase|quotepath|safecrlf|longpaths|symlinks|abbrev)|"
    r"color\.[a-z.-]+|advice\.[a-z]+|diff\.(algorithm|renames|colormoved|context|mnemonicprefix)|"
    r"log\.(date|decorate|abbrevcommit|follow)|status\.[a-z]+|commit\.(verbose|gpgsign)|tag\.sort|"
    r"branch\.(sort|autosetupmerge|autosetuprebase)|rerere\.(enabled|autoupdate)|column\.[a-z]+|"
    r"http\.(postbuffer|lowspeedlimit|lowspeedtime)|submodule\.recurse",
    re.IGNORECASE,
)
_SCOPES: Final = names(
    "--global --local --system --worktree --add --replace-all --unset --unset-all --bool --int "
    "--bool-or-int --path --no-type -z --null --name-only --show-origin --show-scope --includes "
    "--no-includes --all --append"
)
_READS: Final = names("--get --get-all --get-regexp --get-urlmatch --list -l")
_VERBS: Final = names("set unset")
_READING_VERBS: Final = names("get list")


def subcommand_at(words: Sequence[str]) -> int:
    """Return where git's command stands among its words, of which the first is git itself."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    return at


def unproven_words(words: Sequence[str]) -> str | None:
    """Return why words between git and its command are not known to be harmless."""
    for word in words:
        if word.startswith(_ELSEWHERE):
            return f"{word[:40]!r} may let git run what other settings say"
        if word.startswith("-") and word not in _VALUED | _FLAGS and not word.startswith(_GIVEN):
            return f"git's {word[:40]!r} is not known to be harmless"
    return None


def unproven_setting(words: Sequence[str]) -> str | None:
    """Return why the words after `git config` may set what git runs; None where they do not."""
    operands: list[str] = []
    for word in words:
        if not word.startswith("-"):
            operands.append(word)
        elif word in _READS:
            return _reading(words)
        elif word not in _SCOPES and not word.startswith(("--type=", "--default=")):
            return f"git config's {word[:40]!r} is not known to be harmless"
    if operands[:1] and operands[0] in _READING_VERBS:
        return None
    if operands[:1] and operands[0] in _VERBS:
        operands.pop(0)
    elif len(operands) == 1 and "." in operands[0]:  # it is shown
        return None
    if not operands or _SETTINGS.fullmatch(operands[0]):
        return None
    return f"git config may set what git runs, by {operands[0][:40]!r}"


def _reading(words: Sequence[str]) -> str | None:
    for word in words:
        if word.startswith("-") and word not in _READS | _SCOPES:
            return f"git config's {word[:40]!r} is not known to be harmless"
    return None
