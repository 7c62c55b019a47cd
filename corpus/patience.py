"""When a scan gives its model up: calls fail in a row for a cause that the next one will share."""

from __future__ import annotations

from typing import Final

from corpus.reasons import gist
from executors.errors import (
    AuthError,
    ConnectFault,
    ContextExceeded,
    ModelError,
    ModelUnusable,
    NotEncodable,
    RequestRejected,
    RetriesExhausted,
)

__all__ = ["Patience"]

# Windows in a row whose calls failed, after all their tries, before a scan gives the model up.
_WINDOWS: Final = 50
# The same where nobody listens at the address at all.
_NOBODY: Final = 3
# The same where nothing was ever answered, and each request is refused in the same words.
_REFUSED: Final = 8
_NOT_FOUND: Final = 404


class Patience:
    """Weighs the results of a scan as they come.

    Args:
        cap: windows in flight: as many may fail before anybody could know.
        answered: an earlier session of the run got usable answers.
    """

    def __init__(self, cap: int, *, answered: bool = False) -> None:
        self._windows = max(_WINDOWS, 4 * cap)
        self._in_a_row = 0
        self._refused = 0
        self._refusal: str | None = None
        self._answered = answered

    def weigh(self, error: Exception | None) -> None:
        """Take the error of a window, None for one that was judged.

        Raises:
            ModelUnusable: to go on would repeat the failure.
        """
        if error is None:
            self._in_a_row = 0
            self._answered = True
            return
        if not isinstance(error, ModelError):
            return
        cause = error.last if isinstance(error, RetriesExhausted) else error
        if isinstance(cause, RequestRejected):
            self._rejected(cause)
            return
        self._in_a_row += 1
        self._refused, self._refusal = 0, None
        nobody = isinstance(cause, ConnectFault) and self._in_a_row >= _NOBODY
        if nobody or isinstance(cause, AuthError) or self._in_a_row >= self._windows:
            raise ModelUnusable(last=cause, failures=self._in_a_row)

    def weigh_reply(self, why: str | None) -> None:
        """Take a window that the model answered.

        Args:
            why: the reason why no item of it has a verdict; None where one has.

        Raises:
            ModelUnusable: it never gave a usable answer, and was narrowed down to single items.
        """
        if why is None or self._answered:
            self.weigh(None)
            return
        self._in_a_row = 0
        self._refused += 1
        if self._refused >= _REFUSED:
            raise ModelUnusable(last=ModelError(why), failures=self._refused)

    def _rejected(self, cause: RequestRejected) -> None:
        """A rejected request speaks of its own items, unless it is the model that is not there."""
        if isinstance(cause, ContextExceeded | NotEncodable):
            return
        missing = cause.status == _NOT_FOUND
        if missing:
            self._in_a_row += 1
            if self._in_a_row >= self._windows:
                raise ModelUnusable(last=cause, failures=self._in_a_row)
        if self._answered:
            return
        words = gist(cause.what)
        self._refused = self._refused + 1 if missing or words == self._refusal else 1
        self._refusal = words
        if self._refused >= _REFUSED:
            raise ModelUnusable(last=cause, failures=self._refused)
