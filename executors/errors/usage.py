"""Yours: the call or the command is wrong."""

from __future__ import annotations

from executors.errors.base import RlmError

__all__ = [
    "ConfigError",
    "DuplicateIds",
    "LabelsError",
    "MissingExtra",
    "RunDirError",
    "SourceError",
    "UsageError",
    "ValidationError",
]


class UsageError(RlmError):
    """The call or the command is wrong; nothing was spent."""

    code = "usage"
    fault = "yours"


class ValidationError(UsageError):
    """A value or an option outside its choices."""

    code = "validation"


class ConfigError(UsageError):
    """A model spec, key, URL or environment variable that cannot work."""

    code = "config"


class MissingExtra(UsageError):
    """An optional dependency is not installed.

    Args:
        extra: name of the extra, as in `pip install 'rlm-recurse[extra]'`.
        needed_for: what asked for it.
    """

    code = "missing-extra"

    def __init__(self, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the extra {extra!r}, which is not installed",
            hint=f"install it with: pip install 'rlm-recurse[{extra}]'",
        )
        self.extra = extra


class SourceError(UsageError):
    """A source cannot be read as asked."""

    code = "source"


class DuplicateIds(SourceError):
    """Ids that stand more than once.

    Args:
        examples: (id, where) of the first repeats, at most 20.
        total: number of repeats found.
    """

    code = "duplicate-ids"

    def __init__(self, examples: list[tuple[str, str]], *, total: int) -> None:
        shown = "; ".join(f"{id_!r} at {where}" for id_, where in examples[:20])
        super().__init__(
            f"{total} record(s) repeat an id that was seen before",
            where=f"first {len(examples[:20])}: {shown}",
            hint="name another id column, or go on with on_duplicate='suffix' (--on-duplicate suffix)",
        )
        self.examples = examples[:20]
        self.total = total


class LabelsError(UsageError):
    """Too few labels, or all of one kind."""

    code = "labels"


class RunDirError(UsageError):
    """A run directory that exists, is locked, or cannot be written."""

    code = "run-dir"
