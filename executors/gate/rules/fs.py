"""Which files a tool may read, write and edit: by where their paths really lead.

What lies between this check and the opening of a file is the tool's to close: ours open name by name and
follow no link.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from executors.errors import ConfigError
from executors.gate.config.fs import FsSection
from executors.gate.decisions import Deny
from executors.gate.rules.paths import LONGEST, Lost, Place, below, located, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from executors.gate.actions import Action

__all__ = ["FsRule"]

_SCOPES: Final = {"read": "fs.readScope", "write": "fs.writeScope", "edit": "fs.writeScope"}
_KEYS: Final = {"fs.readScope": "fs.read_scope", "fs.writeScope": "fs.write_scope"}
_MISSING: Final = object()


class FsRule:
    """Judges what reads, writes and edits files.

    Raises:
        ConfigError: an entry that is relative, below another user's home, or reached over a link.
    """

    def __init__(self, section: FsSection) -> None:
        self._scopes = {
            "fs.readScope": _roots("fs.read_scope", section.read_scope),
            "fs.writeScope": _roots("fs.write_scope", section.write_scope),
        }
        self._denied = tuple(_absolute("fs.deny", entry) for entry in section.deny)

    def deny(self, action: Action) -> Deny | None:
        """Return why an action may not touch its path; None where it may, or touches none."""
        rule = _SCOPES.get(action.kind)
        if rule is None:
            return None
        paths: tuple[object, ...] = action.values("path") or (_MISSING,)
        for path in paths:
            if (found := self._refused(rule, path)) is not None:
                return found
        if len(paths) > 1:
            return _invalid(f"two paths that differ: {_shown(paths[0])} and {_shown(paths[1])}")
        return None

    def why_not(self, path: str) -> str | None:
        """Return why a file may not be read, as text: what a search asks of each file it comes to."""
        found = self._refused("fs.readScope", path)
        return None if found is None else f"[deny: {found.rule}] {found.reason}"

    def _refused(self, rule: str, path: object) -> Deny | None:
        if not isinstance(path, str) or not path:
            said = (
                "no path" if path is _MISSING or path == "" else f"a path of {type(path).__name__}"
            )
            return _invalid(said)
        if "\0" in path or len(path) > LONGEST:
            return _invalid(_shown(path))
        if path.startswith("~"):
            return Deny(rule="fs.homePath", reason=f"write {_shown(path)} out, from / on")
        if not path.startswith("/"):
            return Deny(rule="fs.relativePath", reason=f"{_shown(path)} has to begin at /")
        place = located(path)
        return self._denied_by_name(path, place) or self._outside(rule, path, place)

    def _denied_by_name(self, path: str, place: Place | Lost) -> Deny | None:
        """Hold a path against what is denied: as written, by where it leads, and by what is there."""
        for entry in self._denied:
            there = located(entry)
            if (
                below(spelled(path), spelled(entry))
                or below(place.parts, there.parts)
                or (isinstance(place, Place) and _own_id(there) in place.ids)
            ):
                return Deny(rule="fs.deny", reason=f"{_shown(path)} is in {_shown(entry)}")
        return None

    def _outside(self, rule: str, path: str, place: Place | Lost) -> Deny | None:
        roots, key = self._scopes[rule], _KEYS[rule]
        if roots is None:
            return Deny(rule=f"{rule}.unset", reason=f"{key} is not set, which permits nothing")
        moved: _Root | None = None
        for root in roots:
            if not root.covers(path, place):
                continue
            if root.stands():
                return _uncertain(rule, path, place)
            moved = root
        if moved is not None:
            return Deny(
                rule=f"{rule}.symlinkRoot",
                reason=f"{_shown(moved.path)} is reached over a link now",
            )
        return self._elsewhere(rule, path, place, roots)

    def _elsewhere(self, rule: str, path: str, place: Place | Lost, roots: Sequence[_Root]) -> Deny:
        if any(below(spelled(path), root.parts) for root in roots):
            if isinstance(place, Lost):
                return _uncertain(rule, path, place) or _invalid(_shown(path))
            if place.linked:
                return Deny(
                    rule=f"{rule}.symlinkEscape",
                    reason=f"{_shown(path)} leads over a link to {_shown(place.text)}, outside",
                )
        return Deny(rule=rule, reason=f"{_shown(path)} is in none of {_KEYS[rule]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Root:
    """An entry of a scope, as it stood when the rule was made."""

    path: str
    parts: tuple[str, ...]

    def covers(self, path: str, place: Place | Lost) -> bool:
        """Return whether a path leads here, or would if nobody had put a link in this place."""
        if below(place.parts, self.parts):
            return True
        return below(spelled(path), self.parts) and not self.stands()

    def stands(self) -> bool:
        """Return whether it is still what it was: reached over no link."""
        there = located(self.path)
        return isinstance(there, Place) and not there.linked and there.parts == self.parts


def _uncertain(rule: str, path: str, place: Place | Lost) -> Deny | None:
    if isinstance(place, Lost):
        return Deny(
            rule=f"{rule}.resolveError",
            reason=f"nobody can say where {_shown(path)} leads: {place.reason}",
        )
    if place.dangling:
        return Deny(
            rule=f"{rule}.danglingSymlink",
            reason=f"{_shown(path)} leads over a link to {_shown(place.text)}, which is not there",
        )
    return None


def _own_id(there: Place | Lost) -> tuple[int, int] | None:
    """Return by which number the file system knows what an entry leads to; None: it is not there."""
    try:
        found = os.lstat(f"/{'/'.join(there.parts)}")
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _invalid(said: str) -> Deny:
    return Deny(rule="fs.invalidPath", reason=f"{said}: one absolute path, as text, is needed")


def _shown(path: object) -> str:
    text = path if isinstance(path, str) else type(path).__name__
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


# ---------------------------------------------------------------- entries


def _roots(key: str, entries: Sequence[str] | None) -> tuple[_Root, ...] | None:
    return None if entries is None else tuple(_root(key, entry) for entry in entries)


def _root(key: str, entry: str) -> _Root:
    path = _absolute(key, entry)
    there = located(path)
    if isinstance(there, Lost):
        raise _refused(key, entry, f"cannot be followed: {there.reason}", "name a folder that can")
    if there.linked:
        hint = f"write the real path, {there.text!r}, where that is what you mean"
        raise _refused(key, entry, f"is reached over a link; it leads to {there.text!r}", hint)
    return _Root(path=there.text, parts=there.parts)


def _absolute(key: str, entry: str) -> str:
    """Return an entry as a path from / on; `~` is the home of who made the rule."""
    path = entry
    if entry == "~" or entry.startswith("~/"):
        path = f"{os.environ.get('HOME', '')}{entry[1:]}"
    elif entry.startswith("~"):
        raise _refused(key, entry, "is in another user's home", "write the path from / on")
    if not path.startswith("/"):
        raise _refused(key, entry, "is no absolute path", "write it from / on, or below ~/")
    if "\0" in path or len(path) > LONGEST:
        raise _refused(key, entry, "is a name that no file can have", "write a path from / on")
    return path


def _refused(key: str, entry: str, why: str, hint: str) -> ConfigError:
    return ConfigError(
        f"{key} holds {entry[:200]!r}, which {why}", where="the gate's configuration", hint=hint
    )
