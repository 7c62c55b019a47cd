"""What a call used: tokens in four disjoint tiers."""

from __future__ import annotations

from dataclasses import dataclass

from executors.errors import ValidationError

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

    def __post_init__(self) -> None:
        low = min(self.input or 0, self.cache_read or 0, self.cache_write or 0, self.output or 0)
        if low < 0:
            raise ValidationError(f"{low!r} is no count of tokens", hint="give None when unknown")

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
