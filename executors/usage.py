"""What a call used: tokens in four disjoint tiers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call in four disjoint tiers; None is unknown, zero is zero."""

    input: int | None = None
    """Tokens read at the full price: neither read from nor written to a cache."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Tokens written, reasoning included."""

    @property
    def prompt(self) -> int | None:
        """All tokens of the prompt, whatever their tier; None when the input is unknown."""
        if self.input is None:
            return None
        return self.input + (self.cache_read or 0) + (self.cache_write or 0)

    @property
    def total(self) -> int | None:
        """Prompt plus output; None when either is unknown."""
        prompt = self.prompt
        return None if prompt is None or self.output is None else prompt + self.output
