"""The result of an audit: what was found, what was looked at, and what was not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Self, cast

from executors.replies import JsonValue
from rlm.auditing.findings import Finding, Rejected
from rlm.auditing.folder import Skip

__all__ = ["AuditReport", "Unread"]

_KIND: Final = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file that was handed out, whole or in parts, and of which nothing usable came back."""

    path: str
    part: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit came to; each file of the folder stands in exactly one of its numbers."""

    findings: tuple[Finding, ...] = ()
    """The worst first; each one's quote stands in its file."""
    rejected: tuple[Rejected, ...] = ()
    """What models claimed and no file shows."""
    files: int = 0
    """Files that were read, among them empty and identical ones."""
    empty: int = 0
    identical: int = 0
    """Files with the text of another one, which was shown once; its findings hold for them too."""
    parts: int = 0
    """Workers that files were handed to."""
    unread: tuple[Unread, ...] = ()
    """Files that no worker has an answer about that can be read; nothing is known of them."""
    skipped: tuple[Skip, ...] = ()
    """Files and folders that were not read, each with its reason."""

    @property
    def audited(self) -> int:
        """Files that were looked at from beginning to end."""
        return self.files - len({one.path for one in self.unread})

    @property
    def by_severity(self) -> dict[str, int]:
        """Findings of each severity that there is."""
        return dict(Counter(one.severity for one in self.findings))

    @property
    def by_reason(self) -> dict[str, int]:
        """What was skipped, by reason."""
        return dict(sorted(Counter(one.reason for one in self.skipped).items()))

    def data(self) -> dict[str, JsonValue]:
        """Return it as JSON values, which `read` reads back."""
        return {"kind": _KIND, **cast("dict[str, JsonValue]", asdict(self))}

    @classmethod
    def read(cls, value: object) -> Self | None:
        """Return the report that `data` wrote, be it into a file; None where it is none."""
        if not isinstance(value, Mapping):
            return None
        fields = dict(cast("Mapping[str, object]", value))
        if fields.pop("kind", None) != _KIND:
            return None
        # pydantic is heavy, and only who reads a report needs it.
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_python(fields)
        except ValidationError:
            return None
