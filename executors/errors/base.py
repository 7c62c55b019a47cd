"""The base of all our errors, and those that belong to no family."""

from __future__ import annotations

from typing import ClassVar, Literal

from executors.secrets import scrub

__all__ = [
    "Fault",
    "InternalError",
    "OutputError",
    "RlmError",
    "ToolBroken",
]


Fault = Literal["yours", "world", "ours"]


class RlmError(Exception):
    """Base of all our errors.

    Args:
        what: one line that quotes the offending value.
        where: file, line, option, or call; None when `what` says it all.
        hint: what to do next, with the choices.
    """

    code: ClassVar[str] = "error"
    fault: ClassVar[Fault] = "ours"
    retryable: bool = False

    def __init_subclass__(cls) -> None:
        # Users import these from `rlm`, so that is the name a traceback should show.
        cls.__module__ = "rlm"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        # What is quoted may be a key: this is what tracebacks and logs show.
        return scrub("\n".join(line for line in (self.what, self.where, self.hint) if line))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__))


def _rebuild(cls: type[RlmError], state: dict[str, object]) -> RlmError:
    error = cls.__new__(cls, state["what"])
    error.__dict__.update(state)
    return error


class OutputError(RlmError):
    """What came out cannot be written where it was wanted: a full disk, a folder that went away."""

    code = "output"
    fault = "world"


class ToolBroken(RlmError):
    """A tool cannot serve any call any more: its process died, its server is gone.

    Raised by tools. Any other error of a tool is told to the model, which may try something else.
    """

    code = "tool-broken"
    fault = "world"


class InternalError(RlmError):
    """Our fault."""

    code = "internal"
