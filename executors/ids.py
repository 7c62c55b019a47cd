"""Names of runs, nodes and contents."""

from __future__ import annotations

import secrets
from datetime import datetime
from hashlib import blake2b
from typing import NewType

__all__ = ["ContentKey", "NodeId", "RunId", "child_of", "content_key", "new_run_id"]

RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
"""A path from the root: `root`, `root.2`, `root.2.0`."""
ContentKey = NewType("ContentKey", str)
"""Hex of a 128-bit BLAKE2b digest over length-prefixed parts."""


def new_run_id(now: datetime) -> RunId:
    """Return an id that sorts by time and is unique: `20260131-094500-3f9a2c`."""
    return RunId(f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")


def child_of(parent: NodeId, index: int) -> NodeId:
    """Return the id of the `index`-th child (from 0)."""
    return NodeId(f"{parent}.{index}")


def content_key(*parts: str | bytes) -> ContentKey:
    """Hash parts so that no two different sequences of parts meet: each carries its length.

    A lone surrogate is hashed as its code point, never an error: keys must exist for any text.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return ContentKey(digest.hexdigest())
