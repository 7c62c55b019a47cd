"""Which files the tools may read and write."""

from __future__ import annotations

from executors.gate.config.section import Section

__all__ = ["FsSection"]


class FsSection(Section):
    """Folders and files, each an absolute path or below `~`; whatever is below one belongs to it."""

    read_scope: list[str] | tuple[str, ...] | None = None
    """What may be read. None and [] both permit nothing; the scope for writing does not count here."""
    write_scope: list[str] | tuple[str, ...] | None = None
    """What may be written and edited."""
    deny: list[str] | tuple[str, ...] = ()
    """What may be neither, although a scope covers it."""
