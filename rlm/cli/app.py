"""The commands, and how every ending becomes an exit code.

A command returns its exit code. Errors of ours become their three lines; what nobody expected
becomes one line and a way to report it. Heavy modules load inside the commands that use them.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, cast

import typer

from executors.errors import RlmError
from executors.secrets import scrub
from rlm._version import __version__
from rlm.cli.count import count
from rlm.cli.doctor import doctor
from rlm.cli.exits import Exit, exit_of
from rlm.cli.models import models
from rlm.cli.show import show
from rlm.render.lines import Line, Piece, line, write_lines
from rlm.render.safe import plain

__all__ = ["app", "main"]

_DEBUG = "--debug"
# Of a message that nobody wrote for people; it may hold a whole record.
_UNEXPECTED_WIDTH = 300

app = typer.Typer(
    name="rlm",
    help="Honest answers over more text than one model call can hold.",
    epilog="Exit codes: 0 done, 1 our fault, 2 wrong use, 3 not satisfied, 4 incomplete, 130 Ctrl-C.",
    add_completion=False,
    # Boxes and colours cost half a second of imports, and would print local variables of a crash.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Count the records that match a question.")(count)
app.command(short_help="Show a run that ended, from its receipt.")(show)
app.command(short_help="Say what is installed, and whether a model answers.")(doctor)
app.command(short_help="Say how to name a model, and which are here.")(models)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"rlm {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
    _debug: Annotated[
        bool, typer.Option(_DEBUG, help="Show the traceback of a failure; works anywhere.")
    ] = False,
) -> None:
    """Honest answers over more text than one model call can hold."""


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        args: without the program's name; None takes those of the process.
    """
    given = list(sys.argv[1:] if args is None else args)
    debug = _DEBUG in given[: given.index("--")] if "--" in given else _DEBUG in given
    if debug:
        given.remove(_DEBUG)
    else:
        sys.excepthook = _say_unexpected
    _accept_any_text()
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except RlmError as error:
        if debug:
            sys.excepthook(type(error), error, error.__traceback__)
        _say_error(error)
        return exit_of(error)
    except KeyboardInterrupt:
        _say([line("stopped")])
        return Exit.STOPPED
    except BrokenPipeError:
        # Nobody reads any more; what Python flushes at its end must have somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED


def _run(args: list[str]) -> int:
    # Not `command.main`: it would turn a closed pipe and Ctrl-C into codes of its own.
    command = typer.main.get_command(app)
    try:
        with command.make_context("rlm", args or ["--help"]) as context:
            code: object = command.invoke(context)
    except typer.Exit as wanted:
        return wanted.exit_code
    except typer.TyperException as error:
        _say_usage(error)
        return Exit.USAGE
    return code if isinstance(code, int) else Exit.DONE


def _say(lines: list[Line]) -> None:
    write_lines(lines, sys.stderr)


def _say_error(error: RlmError) -> None:
    first, *rest = [plain(scrub(text)) for text in (error.what, error.where, error.hint) if text]
    _say([line(Piece("rlm: ", "bad"), first), *(line(f"  {text}") for text in rest)])


def _say_usage(error: typer.TyperException) -> None:
    path: object = getattr(getattr(error, "ctx", None), "command_path", "rlm")
    message = plain(error.format_message()) or "nothing was asked for"
    _say([line(Piece("rlm: ", "bad"), message), line(f"  see: {path} --help")])


def _say_unexpected(
    _kind: type[BaseException], error: BaseException, _trace: TracebackType | None
) -> None:
    """Say what nobody expected in one line; installed as the hook for what nothing catches."""
    error = _innermost(error)
    what = plain(scrub(f"{type(error).__name__}: {error}"), _UNEXPECTED_WIDTH)
    _say(
        [
            line(Piece("rlm: ", "bad"), f"failed unexpectedly: {what}"),
            line(f"  in rlm {__version__}, Python {sys.version.split()[0]}: a fault of rlm's"),
            line(f"  please report it with what `rlm {_DEBUG} …` prints"),
        ]
    )


def _innermost(error: BaseException) -> BaseException:
    """Return the one error that a group of groups holds; the group itself when it holds more."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        if len(group.exceptions) != 1:
            return group
        error = group.exceptions[0]
    return error


def _accept_any_text() -> None:
    """Let no text fail for the encoding of a stream: what it cannot show is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
