"""Which commands the tools may run, and which a person is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from pydantic import Field

from executors.gate.config.section import Section

__all__ = ["INTERPRETERS", "BashSection", "Platform"]

Platform = Literal["linux", "macos", "windows"]
INTERPRETERS: Final = (
    r"(^|[\s/])(python|pypy|node|deno|bun|ruby|perl|php|lua)[0-9.]* (.* )?-(c|e|r|-eval|-print)\b"
)
"""For `extra_destructive`: programs given as text. Off by default, since most of them do no harm."""


class BashSection(Section):
    """Rules about commands. Patterns are regular expressions that run in linear time (RE2)."""

    allow: list[str] | tuple[str, ...] | None = None
    """Beginnings of commands, whole word by whole word: "git log" allows `git log -3`, not `git logs`.
    None has no opinion, [] permits no command. What a shell would read as more than one plain command
    is refused."""
    deny_patterns: list[str] | tuple[str, ...] = ()
    """What no command may hold."""
    classify: bool = False
    """Ask about commands that destroy: tier 2, and tier 3 where there is no way back."""
    platform: Platform | None = None
    """Whose commands are meant; None is this machine's."""
    extra_destructive: list[str] | tuple[str, ...] = ()
    """Patterns of tier 2 besides our own."""
    extra_super_destructive: list[str] | tuple[str, ...] = ()
    """Patterns of tier 3 besides our own."""
    reclassify: Callable[[str, int], object] | None = Field(default=None, exclude=True, repr=False)
    """Hears a command and its tier (1 is safe), and returns the tier that it shall have. One that
    raises or gives anything but 1, 2 or 3 changes nothing. A file cannot hold it."""
