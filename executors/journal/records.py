"""The Journal protocol: an answer is durable before it is acknowledged."""

from __future__ import annotations

from typing import Protocol

from executors.ids import ContentKey
from executors.messages import ModelReply

__all__ = ["Journal", "NoJournal"]


class Journal(Protocol):
    """Where calls are written down."""

    def find(self, key: ContentKey) -> ModelReply | None:
        """Return the clean answer filed under a key, None when there is none."""
        ...

    def intent(self, key: ContentKey) -> None:
        """Note that a call is about to leave."""
        ...

    async def answer(self, key: ContentKey, reply: ModelReply) -> None:
        """Return once the answer is durable."""
        ...


class NoJournal:
    """Remembers nothing: each run pays for itself."""

    def find(self, key: ContentKey) -> ModelReply | None:
        return None

    def intent(self, key: ContentKey) -> None:
        pass

    async def answer(self, key: ContentKey, reply: ModelReply) -> None:
        pass
