"""`rlm gate check`: what a gate decides about an action, why, and what would change it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from executors.errors import UsageError
from rlm.cli.exits import Exit
from rlm.cli.options import Json
from rlm.cli.printing import print_json

if TYPE_CHECKING:
    from executors.gate.actions import Action
    from executors.gate.config.config import GateConfig
    from executors.gate.decisions import Decision
    from rlm.render.lines import Line, Style

__all__ = ["EXAMPLES", "check"]

EXAMPLES: Final = (
    "Examples: rlm gate check gate.yaml bash 'rm -rf /' | read /etc/passwd | tool search"
)

_FIELDS: Final = {
    "bash": "cmd",
    "read": "path",
    "write": "path",
    "edit": "path",
    "fetch": "url",
    "llm": None,
    "spawn": None,
    "defer": None,
}


def check(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="Configuration: .yaml, .toml or .json.")
    ],
    action: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION",
            help="One JSON object, or words: bash CMD, read|write|edit PATH, fetch URL, "
            "spawn, defer, llm, tool NAME [JSON].",
        ),
    ],
    *,
    json_: Json = False,
) -> int:
    """Say what a gate decides about an action at the beginning of a run. Nothing happens.

    Exit codes: 0 allowed, 3 denied, halted or for a person to decide, 2 wrong use.
    """
    # They need pydantic and RE2; --help has no use for either.
    from executors.gate.actions import plain
    from executors.gate.config.load import load_config

    wanted = plain(_given(action))
    decision = _decided(load_config(config), wanted)
    if json_:
        print_json(_data(decision))
    else:
        _say(decision)
    return Exit.DONE if decision.outcome == "allow" else Exit.NOT_SATISFIED


def _decided(config: GateConfig, action: Action) -> Decision:
    from executors.gate.audit.redactor import Redactor
    from executors.gate.ledger.ledger import Ledger
    from executors.gate.rules.order import Rules

    rules = Rules(config)
    Redactor(config.secrets)  # says what is wrong with a pattern of it
    ledger = Ledger(
        None, budget=config.budget, limits=config.limits, spawn=config.spawn, defer=config.defer
    )
    try:
        return ledger.halts() or rules.evaluate(action, ledger.refuses)
    finally:
        ledger.close()


def _given(words: list[str]) -> object:
    """Return the action that words name.

    Raises:
        UsageError: they name none.
    """
    first, *rest = words
    if first.lstrip().startswith("{"):
        return _object(" ".join(words))
    if first == "tool" and rest:
        arguments = {"args": _object(" ".join(rest[1:]))} if rest[1:] else {}
        return {"type": rest[0], **arguments}
    if first not in _FIELDS:
        raise UsageError(
            f"{first!r} is no action",
            hint=f"begin with {', '.join(_FIELDS)}, tool NAME, or give one JSON object",
        )
    field = _FIELDS[first]
    if rest and field is None:
        raise UsageError(f"{first!r} takes nothing more: {' '.join(rest)!r}", hint=EXAMPLES)
    return {"type": first, field: " ".join(rest)} if rest else {"type": first}


def _object(text: str) -> dict[str, object]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{text[:200]!r} is no JSON: {error}", hint=EXAMPLES) from None
    if not isinstance(found, dict):
        raise UsageError(f"{text[:200]!r} is no JSON object", hint=EXAMPLES)
    return cast("dict[str, object]", found)


def _data(decision: Decision) -> dict[str, object]:
    from executors.gate.rules.remedies import remedy

    return {
        "decision": "halt" if decision.severity == "halt" else decision.outcome,
        "severity": decision.severity,
        "rule": decision.rule,
        "reason": _reason(decision),
        "remedy": remedy(decision.rule),
    }


def _say(decision: Decision) -> None:
    from rlm.render.lines import Piece, line, write_lines
    from rlm.render.safe import plain

    data = {key: plain(str(value)) for key, value in _data(decision).items()}
    styles: dict[str, Style] = {"allow": "good", "ask": "warn"}
    word = data["decision"]
    lines: list[Line] = [line(Piece(word, styles.get(word, "bad")), f"  {data['rule']}")]
    if data["reason"]:
        lines.append(line(f"  why: {data['reason']}"))
    lines.append(line(f"  to change it: {data['remedy']}"))
    write_lines(lines, sys.stdout)


def _reason(decision: Decision) -> str:
    from executors.gate.decisions import Ask

    return decision.question if isinstance(decision, Ask) else decision.reason
