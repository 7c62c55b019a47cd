"""The terminal in front of a labelling session: what a person sees, and the keys they press."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import TextIO, assert_never

from executors.errors import UsageError
from rlm.labelling.session import (
    QUIT,
    SKIP,
    UNDO,
    Action,
    Ignored,
    Labelled,
    Quit,
    Session,
    Shown,
    Skipped,
    Undone,
)
from rlm.labelling.terminal import Keys, screen_size
from rlm.render.lines import Line, Piece, line, write_lines
from rlm.render.safe import plain, plain_lines

__all__ = ["label_in_terminal", "require_terminal", "who"]


def who() -> str:
    """Return who sits here: $USER, or the name of the account."""
    try:
        return os.environ.get("USER") or getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        return f"uid {os.getuid()}"


def label_in_terminal(session: Session, *, stdin: TextIO, out: TextIO) -> None:
    """Show records and read keys until the goal, the end of the records, or `q`.

    Raises:
        UsageError: standard input is no terminal.
    """
    require_terminal(stdin)
    write_lines([line(f"labels are saved key by key in {plain(str(session.path))}")], out)
    with Keys(stdin.fileno()) as keys:
        while True:
            action = _turn(session, keys, out)
            if action is None:
                return
            write_lines([_said(action)], out)
            if isinstance(action, Quit):
                return


def _turn(session: Session, keys: Keys, out: TextIO) -> Action | None:
    """Show what there is and take keys until one means something; None: all is done."""
    shown = session.shown
    if shown is None:
        if not session.made:
            return None
        write_lines([line("done: any key ends, ", Piece(f"[{UNDO}]", "strong"), " undo")], out)
        return session.press(UNDO) if keys.read() == UNDO else None
    write_lines(_page(session, shown), out)
    while isinstance(action := session.press(keys.read()), Ignored):
        write_lines([_said(action)], out)
    return action


def require_terminal(stdin: TextIO) -> None:
    """Refuse to ask where nobody can answer.

    Raises:
        UsageError: it is no terminal.
    """
    if not stdin.isatty():
        raise UsageError(
            "labels are asked for key by key, but standard input is no terminal",
            where="--label",
            hint="run it in a terminal, or give labels in a file or a column (--labels)",
        )


def _page(session: Session, shown: Shown) -> list[Line]:
    columns, rows = screen_size()
    count = len(session.labels)
    rule = "-" * min(columns, 60)
    head = line(Piece(f"{count + 1} of {session.goal}", "strong"), f"  {plain(shown.id, columns)}")
    body = [line(text) for text in plain_lines(shown.text, columns, max(4, rows - 9))]
    asked = line(Piece(plain(session.question.text, columns * 2), "strong"))
    return [line(Piece(rule, "dim")), head, line(""), *body, line(""), asked, _help(session.keys)]


def _help(keys: Mapping[str, str]) -> Line:
    pieces: list[str | Piece] = []
    for key, label in {**keys, SKIP: "skip", UNDO: "undo", QUIT: "quit"}.items():
        pieces += [Piece(f"[{key}]", "strong"), f" {plain(label, 40)}  "]
    return line(*pieces)


def _said(action: Action) -> Line:
    match action:
        case Labelled():
            return line(
                Piece(f"saved: {plain(action.id, 40)} is {plain(action.label, 40)}", "good")
            )
        case Skipped():
            return line(f"skipped: {plain(action.id, 40)}")
        case Undone():
            return line(f"undone: {plain(action.id, 40)}")
        case Quit():
            return line("labelling ends here; every label so far is saved")
        case Ignored():
            return line(Piece(action.why, "warn"))
        case _:
            assert_never(action)
