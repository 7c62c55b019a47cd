"""Files that may hold secrets: they are never read for an audit, whatever was asked for. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Final

__all__ = ["begins_like_a_key", "is_withheld"]

_NAMES: Final = (
    ".env*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".htpasswd",
    ".git-credentials", ".dockercfg", ".vault-token", "credentials", "credentials.json",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8",
    "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg", "*.asc", "*.age", "*.ovpn",
    "*.tfstate", "*.tfstate.*", "*.tfvars",
)  # fmt: skip
_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".azure", ".docker"})
_KEY: Final = re.compile(rb"\s*-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY")


def is_withheld(name: str, *, folder: bool) -> bool:
    """Whether a name is one of those under which secrets are kept; case does not matter."""
    lower = name.lower()
    if folder:
        return lower in _FOLDERS
    return any(fnmatchcase(lower, pattern) for pattern in _NAMES)


def begins_like_a_key(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a private key, whatever it is called."""
    return _KEY.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
