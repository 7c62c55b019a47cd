"""The one error of a task group, without the group around it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["ungrouped"]


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise the first error of a group by itself: its siblings were cancelled for it."""
    try:
        yield
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    match errors.exceptions[0]:
        case BaseExceptionGroup() as inner:
            return _first(inner)
        case error:
            return error
