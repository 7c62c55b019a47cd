"""The commands, and how every ending becomes an exit code.

A command returns its exit code. Errors of ours become their three lines; what nobody expected
becomes one line and a way to report it. Heavy modules load inside the commands that use them.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated

import typer

from executors.errors import OutputError, RlmError, UsageError
from rlm._version import __version__
from rlm.cli.audit import EXAMPLES as AUDITS
from rlm.cli.audit import audit
from rlm.cli.count import EXAMPLES, count
from rlm.cli.doctor import doctor
from rlm.cli.exits import Exit, exit_of
from rlm.cli.faults import say_error, unexpected
from rlm.cli.gate import gate
from rlm.cli.interrupt import ending_like_ctrl_c, stopped_by
from rlm.cli.models import models
from rlm.cli.plan import EXAMPLES as PLANS
from rlm.cli.plan import plan
from rlm.cli.recurse import EXAMPLES as RECURSIONS
from rlm.cli.recurse import recurse
from rlm.cli.resume import resume
from rlm.cli.runs import runs
from rlm.cli.show import show
from rlm.cli.streams import own_streams
from rlm.render.lines import line, write_lines

__all__ = ["app", "main"]

_DEBUG = "--debug"
_COMMANDS = ("audit", "count", "recurse", "resume", "show", "runs", "gate", "doctor", "models")

app = typer.Typer(
    name="rlm",
    help="Honest answers over more text than one model call can hold.",
    epilog="Exit codes: 0 done, 1 our fault, 2 wrong use, 3 not satisfied, 4 incomplete, 130 second Ctrl-C.",
    add_completion=False,
    # Boxes and colours cost half a second of imports, and would print local variables of a crash.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Count the records that match a question.", epilog=EXAMPLES)(count)
app.command("recurse", short_help="Do a hard task by taking it apart.", epilog=RECURSIONS)(recurse)
app.command(short_help="Audit the files of a folder; findings are shown there.", epilog=AUDITS)(
    audit
)
app.command("plan", short_help="Say what a task would take; ask nothing.", epilog=PLANS)(plan)
app.command(short_help="Go on with a run; nothing is paid twice.")(resume)
app.command(short_help="Show a run that ended, from its receipt.")(show)
app.add_typer(runs, name="runs", short_help="List, delete and edit runs.")
app.add_typer(gate, name="gate", short_help="Try the rules of a gate.")
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
        args: without the program's name; None takes those of the process, and its streams and
            signals too.
    """
    given = list(sys.argv[1:] if args is None else args)
    options = given[: given.index("--")] if "--" in given else given
    debug, as_json = _DEBUG in options, "--json" in options
    if debug:
        given.remove(_DEBUG)
    else:
        sys.excepthook = unexpected(debug=_DEBUG, as_json=as_json)
    with ending_like_ctrl_c() if args is None else nullcontext():
        try:
            if args is None:
                own_streams()
            _accept_any_text()
            code = _run(given)
            sys.stdout.flush()
            return code
        except RlmError as error:
            if debug:
                sys.excepthook(type(error), error, error.__traceback__)
            return _failed(error, as_json=as_json)
        except KeyboardInterrupt:
            by = stopped_by()
            said = "stopped" if by is signal.SIGINT else f"stopped by {by.name}"
            write_lines([line(said)], sys.stderr)
            return 128 + by
        except BrokenPipeError:
            return Exit.PIPE_CLOSED


def _failed(error: RlmError, *, as_json: bool) -> int:
    try:
        say_error(error, as_json=as_json)
        sys.stdout.flush()
    except (BrokenPipeError, OutputError):
        pass  # nobody reads the JSON; why it ended was said
    return exit_of(error)


def _run(args: list[str]) -> int:
    # Not `command.main`: it would turn a closed pipe and Ctrl-C into codes of its own.
    command = typer.main.get_command(app)
    try:
        with command.make_context("rlm", args or ["--help"]) as context:
            code: object = command.invoke(context)
    except typer.Exit as wanted:
        return wanted.exit_code
    except typer.TyperException as error:
        raise _usage(error, args) from None
    return code if isinstance(code, int) else Exit.DONE


def _usage(error: typer.TyperException, args: list[str]) -> UsageError:
    path: object = getattr(getattr(error, "ctx", None), "command_path", "rlm")
    # An option without its value is refused before the command is known to the error.
    if path == "rlm" and args and args[0] in _COMMANDS:
        path = f"rlm {args[0]}"
    return UsageError(error.format_message() or "nothing was asked for", hint=f"see: {path} --help")


def _accept_any_text() -> None:
    """Let no text fail for the encoding of a stream: what it cannot show is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
