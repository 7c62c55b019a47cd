"""How an error is said: three lines on standard error, and one JSON object where that was asked."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, cast

from executors.errors import InternalError, OutputError, RlmError
from executors.secrets import scrub
from rlm._version import __version__
from rlm.cli.printing import print_json
from rlm.render.lines import Piece, line, write_lines
from rlm.render.safe import plain

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["error_data", "say_error", "unexpected"]

# Of a message that nobody wrote for people; it may hold a whole record.
_UNEXPECTED_WIDTH = 300


def say_error(error: RlmError, *, as_json: bool = False) -> None:
    """Say what, where and what to do next."""
    first, *rest = [_safe(text) for text in (error.what, error.where, error.hint) if text]
    lines = [line(Piece("rlm: ", "bad"), first), *(line(f"  {text}") for text in rest)]
    write_lines(lines, sys.stderr)
    if as_json and not isinstance(error, OutputError):
        print_json({"error": error_data(error)})


def error_data(error: RlmError) -> dict[str, str | None]:
    """Return the code and the three lines of an error, None where it has no such line."""
    return {
        "code": error.code,
        "what": _safe(error.what),
        "where": None if error.where is None else _safe(error.where),
        "hint": None if error.hint is None else _safe(error.hint),
    }


def unexpected(
    *, debug: str, as_json: bool
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """Return a hook that says what nobody expected in one line, and how to report it.

    Args:
        debug: the option that shows a traceback.
    """

    def say(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        error = _innermost(error)
        what = plain(scrub(f"{type(error).__name__}: {error}"), _UNEXPECTED_WIDTH)
        fault = InternalError(
            f"failed unexpectedly: {what}",
            where=f"in rlm {__version__}, Python {sys.version.split()[0]}: a fault of rlm's",
            hint=f"please report it with what `rlm {debug} …` prints",
        )
        say_error(fault, as_json=as_json)

    return say


def _safe(text: str) -> str:
    return plain(scrub(text))


def _innermost(error: BaseException) -> BaseException:
    """Return the one error that a group of groups holds; the group itself when it holds more."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        if len(group.exceptions) != 1:
            return group
        error = group.exceptions[0]
    return error
