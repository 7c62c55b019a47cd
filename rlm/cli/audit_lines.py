"""Lines of an audit as people look for them: which ones, and how one is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executors.gate.audit.reading import AuditLine
    from rlm.render.lines import Line

__all__ = ["row", "wanted_lines"]


def wanted_lines(
    *,
    phases: frozenset[str],
    rule: str | None,
    tool: str | None,
    node: str | None,
    denied: bool,
    since: datetime | None,
) -> Callable[[AuditLine], bool]:
    """Return what tells the lines that are asked for; whatever is not given is as it may be.

    Args:
        rule, tool, node: a name; with a star at its end, how the name begins.
    """

    def wanted(line: AuditLine) -> bool:
        return (
            (not phases or line.phase in phases)
            and (not denied or line.text("decision") == "deny")
            and (rule is None or _fits(line.text("rule"), rule))
            and (tool is None or any(_fits(name, tool) for name in _tools(line)))
            and (node is None or _fits(_node(line), node))
            and (since is None or _is_since(line, since))
        )

    return wanted


def _fits(name: str, pattern: str) -> bool:
    """Match a name; a star at the end of the pattern stands for any text."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _tools(line: AuditLine) -> Iterator[str]:
    for name in ("tool", "type"):
        value = line.action.get(name)
        if isinstance(value, str):
            yield value


def _node(line: AuditLine) -> str:
    context = line.action.get("_ctx")
    at = context.get("at") if isinstance(context, dict) else None
    return at if isinstance(at, str) else line.text("node")


def _is_since(line: AuditLine, since: datetime) -> bool:
    time = _written(line)
    return time is not None and time >= since


def _written(line: AuditLine) -> datetime | None:
    with suppress(ValueError):
        time = datetime.fromisoformat(line.text("ts"))
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return None


def row(one: AuditLine) -> Line:
    """Return a line of the audit as a line of a table."""
    from rlm.render.lines import Piece, Style, line
    from rlm.render.safe import plain

    decision = one.text("decision")
    style: dict[str, Style] = {"allow": "good", "deny": "bad", "askHuman": "warn"}
    time = _written(one)
    stamp = plain(one.text("ts"), 19) if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
    return line(
        Piece(f"{stamp}  ", "dim"),
        f"{plain(one.phase, 11):<11} ",
        Piece(f"{plain(decision, 8):<8} ", style.get(decision, "plain")),
        plain("  ".join(part for part in _facts(one) if part), 160),
    )


def _facts(one: AuditLine) -> Iterator[str]:
    """Say of a line what people look for: by which rule, which tool, what of it, what it took."""
    yield one.text("rule")
    match one.phase:
        case "call":
            yield from (one.text("role"), one.text("node"), one.text("model"))
            yield f"{one.fields.get('tokens')} tokens, {one.text('usd')} USD"
            yield "price unknown" if one.fields.get("unpriced") is True else ""
            yield "overrun" if one.fields.get("overrun") is True else ""
        case "topup":
            yield f"{one.text('dimension')}: {one.text('old_cap')} -> {one.text('new_cap')}"
        case _:
            tool = next(_tools(one), "")
            yield tool
            yield _subject(one)
            yield _node(one)
    yield one.text("reason")


def _subject(one: AuditLine) -> str:
    """Return what an action is about, by the fields that say so."""
    args = one.action.get("args")
    places = (one.action, args if isinstance(args, dict) else {})
    for place in places:
        for name in ("cmd", "command", "path", "url"):
            value = place.get(name)
            if isinstance(value, str) and value:
                return value
    return ""
