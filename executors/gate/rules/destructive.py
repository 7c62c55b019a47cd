"""How destructive a command is: 1 safe, 2 destroys something, 3 destroys what nobody brings back.

By what programs are called and given, on each platform. Whoever wants to hide something can: this is to
ask before mistakes, and is no sandbox.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final, Literal

from executors.gate.config.bash import Platform
from executors.gate.rules.gits import subcommand_at
from executors.gate.rules.programs import names, program
from executors.gate.rules.unfolding import Step, Unfolded

__all__ = ["Tier", "tier_of"]

Tier = Literal[1, 2, 3]

_SYSTEM: Final = names(
    "bin boot dev etc lib lib32 lib64 libx32 opt proc run sbin srv sys usr var system library "
    "applications private volumes cores"
)
_HOMES: Final = frozenset({"home", "users"})
_PASSING: Final = (("var", "tmp"), ("var", "folders"), ("var", "cache"), ("private", "tmp"))
_DISK: Final = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|md|loop|mem|kmem|sr)")
_GLOB: Final = re.compile(r"[*?\[{]")
_HOME: Final = re.compile(r"(~[a-z0-9_-]*|\$home|\$\{home[^}]*\})(/|/\.?\*|/\.)?")
_DRIVE: Final = re.compile(r"[a-z]:[\\/]?\*?")

_ENDS_OF_DISKS: Final = {
    "linux": names(
        "mke2fs mkswap wipefs fdisk sfdisk cfdisk sgdisk gdisk parted blkdiscard lvremove vgremove "
        "pvremove mdadm hdparm nvme"
    ),
    "macos": frozenset({"newfs", "gpt", "asr", "fdisk", "pdisk"}),
    "windows": frozenset({"format", "diskpart", "cipher", "bcdedit"}),
}
_ENDS_BY: Final = {
    "cryptsetup": names("erase luksformat lukserase lukskillslot luksremovekey reencrypt"),
    "zpool": names("destroy labelclear"),
    "zfs": names("destroy"),
}
_SETTINGS: Final = names("etc boot bin sbin lib lib32 lib64 usr system library efi")
_COPIES: Final = names("cp install ln rsync scp")
_ENDS_OF_SYSTEMS: Final = frozenset({"shutdown", "reboot", "halt", "poweroff", "telinit"})
_FETCHERS: Final = names("curl wget fetch aria2c httpie http lynx nc ncat socat ftp")
_DESTROYS: Final = names(
    "rm rmdir unlink shred srm wipe mv chmod chown chgrp chattr setfacl kill pkill killall truncate "
    "userdel groupdel deluser delgroup passwd usermod visudo iptables nft ufw swapoff umount "
    "dropdb dropuser crontab rename"
)
_DESTROYS_ON: Final = {
    "linux": frozenset({"systemctl", "modprobe", "rmmod"}),
    "macos": frozenset({"launchctl", "csrutil", "nvram", "dscl", "tmutil"}),
    "windows": names(
        "del erase rd rmdir remove-item taskkill reg takeown icacls attrib move ri stop-process"
    ),
}
_SUBCOMMANDS: Final = {
    "docker": frozenset({"rm", "rmi", "prune", "kill", "down"}),
    "podman": frozenset({"rm", "rmi", "prune", "kill", "down"}),
    "kubectl": frozenset({"delete", "drain", "replace"}),
    "helm": frozenset({"uninstall", "delete"}),
    "terraform": frozenset({"destroy", "apply"}),
    "apt": frozenset({"remove", "purge", "autoremove"}),
    "apt-get": frozenset({"remove", "purge", "autoremove"}),
    "dnf": frozenset({"remove", "erase"}),
    "yum": frozenset({"remove", "erase"}),
    "brew": frozenset({"uninstall", "remove", "rm"}),
    "pip": frozenset({"uninstall"}),
    "npm": frozenset({"uninstall", "unpublish", "publish"}),
    "systemctl": frozenset({"stop", "disable", "mask", "kill"}),
    "aws": frozenset({"rm", "rb", "terminate-instances", "delete-bucket"}),
    "redis-cli": frozenset({"flushall", "flushdb"}),
}
_ONLY_WITH: Final = frozenset({"systemctl"})
_POWER: Final = frozenset({"poweroff", "reboot", "halt", "kexec", "emergency", "rescue"})


def tier_of(found: Unfolded, platform: Platform) -> Tier:
    """Return the worst tier of all that a script does."""
    if found.bomb:
        return 3
    tiers: list[Tier] = [1, *(_step(step, platform) for step in found.steps)]
    if any(step.runs_input or step.runs_output for step in found.steps):
        fetches = any(program(step.words[0]) in _FETCHERS for step in found.steps if step.words)
        tiers.append(3 if fetches else 2)
    if found.unknown is not None:
        tiers.append(2)
    return max(tiers)


def _step(step: Step, platform: Platform) -> Tier:
    kept = step.command.appended
    tiers: list[Tier] = [1, *(_written(one, appends=one in kept) for one in step.command.targets)]
    if step.words:
        name, words = program(step.words[0]), [word.lower() for word in step.words[1:]]
        tiers.append(_by_program(name, words, list(step.words[1:]), platform))
    return max(tiers)


def _written(target: str, *, appends: bool = False) -> Tier:
    """Return what it means to write to a file: over a disk, or over what a system is set up by."""
    target = target.lower()
    if _DISK.match(target):
        return 3
    if not target.startswith("/"):
        return 1
    parts = [part for part in posixpath.normpath(target).split("/") if part]
    if parts[:1] == ["private"]:
        parts = parts[1:]
    if len(parts) < 2 or parts[0] not in _SETTINGS:
        return 1
    return 2 if appends or parts[:2] == ["usr", "local"] else 3


def _by_program(name: str, words: Sequence[str], exact: Sequence[str], platform: Platform) -> Tier:
    if name in _ENDS_OF_SYSTEMS or _ends_disk(name, words, platform):
        return 3
    if name == "dd":
        return _dd(words)
    if name == "tee":
        appends = any(word in ("-a", "--append") for word in words)
        tiers: list[Tier] = [1, *(_written(word, appends=appends) for word in words)]
        return max(tiers)
    if name in _COPIES:
        operands = [word for word in words if not word.startswith("-")]
        over = _written(operands[-1], appends=True) if len(operands) > 1 else 1
        if over > 1:
            return over
    if name == "git":
        return _git(exact)
    if name == "find":
        return _find(words)
    if name in ("init", "systemctl") and platform == "linux" and words:
        ends = words[0] in ("0", "6") if name == "init" else not _POWER.isdisjoint(words)
        return 3 if ends else _subcommand(name, words)
    if name in _DESTROYS or (name in _DESTROYS_ON[platform] and name not in _ONLY_WITH):
        return _destroys(name, words, platform)
    if name == "rsync":
        return 2 if any(word.startswith("--del") for word in words) else 1
    return _subcommand(name, words)


def _ends_disk(name: str, words: Sequence[str], platform: Platform) -> bool:
    if name in _ENDS_OF_DISKS[platform]:
        return platform != "windows" or name != "format" or any(_DRIVE.fullmatch(w) for w in words)
    if platform == "linux":
        return (
            name == "mkfs"
            or name.startswith("mkfs.")
            or not _ENDS_BY.get(name, frozenset()).isdisjoint(words)
        )
    if platform == "macos" and name == "diskutil":
        return any(word.startswith(("erase", "partition", "zero", "secure")) for word in words)
    return False


def _destroys(name: str, words: Sequence[str], platform: Platform) -> Tier:
    if name in ("kill", "pkill", "killall"):
        return 3 if words[-1:] == ["-1"] and len(words) > 1 else 2
    targets = [word for word in words if not word.startswith("-")]
    if name == "mv":
        return 3 if any(_is_vital(word, platform) for word in targets[:-1]) else 2
    every = name in ("rm", "shred", "rmdir", "srm", "del", "rd", "erase", "remove-item", "ri")
    if every or any(_is_recursive(word) for word in words):
        return 3 if any(_is_vital(word, platform) for word in targets) else 2
    return 2


def _is_recursive(word: str) -> bool:
    if word.startswith("--"):
        return len(word) > 3 and "--recursive".startswith(word)
    return word.startswith("-") and "r" in word


def _is_vital(target: str, platform: Platform) -> bool:
    """Return whether a whole system, or all that a person has, lives on what a path names."""
    if _HOME.fullmatch(target):
        return True
    if platform == "windows" and (_DRIVE.fullmatch(target) or target.startswith("c:\\windows")):
        return True
    if not target.startswith("/"):
        return False
    parts = [part for part in posixpath.normpath(target).split("/") if part]
    while parts and parts[-1] in ("*", ".*"):
        parts.pop()
    if len(parts) < 2:
        return parts != ["tmp"]
    if _GLOB.search(parts[0]):
        return True
    if parts[0] in _HOMES:
        return len(parts) == 2
    if any(tuple(parts[:2]) == one for one in _PASSING):
        return False
    return parts[0] in _SYSTEM


def _dd(words: Sequence[str]) -> Tier:
    written = [word.removeprefix("of=") for word in words if word.startswith("of=")]
    if any(_DISK.match(one) for one in written):
        return 3
    return 2 if written else 1


def _find(words: Sequence[str]) -> Tier:
    if "-delete" not in words:
        return 1
    starts = [word for word in words if word.startswith(("/", "~", "$"))]
    return 3 if any(_is_vital(word, "linux") for word in starts) else 2


def _git(words: Sequence[str]) -> Tier:
    at = subcommand_at(["git", *words]) - 1
    command, rest = "".join(words[at : at + 1]), list(words[at + 1 :])
    short = "".join(word[1:] for word in rest if word.startswith("-") and word[1:2] != "-")
    destroys = {
        "push": "f" in short or "d" in short or any(_forces(word) for word in rest),
        "send-pack": any(_forces(word) for word in rest),
        "reset": _has(rest, "--hard", "--merge", "--keep"),
        "read-tree": _has(rest, "--reset"),
        "clean": "n" not in short and not _has(rest, "--dry-run"),
        "checkout": "f" in short or _has(rest, "--force") or "--" in rest or "." in rest,
        "checkout-index": "f" in short or _has(rest, "--force"),
        "switch": "f" in short or _has(rest, "--discard-changes", "--force") or "C" in short,
        "restore": True,
        "branch": not {"D", "d", "f", "M", "C"}.isdisjoint(short)
        or _has(rest, "--delete", "--force"),
        "tag": "d" in short or "f" in short or _has(rest, "--delete", "--force"),
        "stash": "drop" in rest or "clear" in rest,
        "reflog": "expire" in rest or "delete" in rest,
        "update-ref": "d" in short or "--stdin" in rest,
        "symbolic-ref": "d" in short or _has(rest, "--delete"),
        "rm": True,
        "prune": True,
        "gc": _has(rest, "--prune"),
        "filter-branch": True,
        "filter-repo": True,
        "worktree": "remove" in rest,
        "submodule": "deinit" in rest,
        "remote": "remove" in rest or "rm" in rest,
    }
    return 2 if destroys.get(command, False) else 1


def _has(words: Sequence[str], *options: str) -> bool:
    """Return whether one of some long options is given, which git lets be cut short."""
    given = [name for word in words if len(name := word.partition("=")[0]) > 3]
    return any(option.startswith(name) for name in given for option in options)


def _forces(word: str) -> bool:
    return word.startswith(("+", ":")) or _has(
        [word], "--force", "--force-with-lease", "--mirror", "--delete", "--prune"
    )


def _subcommand(name: str, words: Sequence[str]) -> Tier:
    known = _SUBCOMMANDS.get(name)
    return 2 if known is not None and not known.isdisjoint(words) else 1
