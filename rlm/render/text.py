"""The terminal's view of a run: the block of its result and the tree of its receipts.

Both are drawn from receipts alone, so that a run looks the same when it ends and years later. A
receipt may come from another machine: nothing in it is trusted to have the type or the size that
ours have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Final, cast

from rlm.receipts.receipts import NodeReceipt, Receipts, Totals
from rlm.receipts.sittings import SessionReceipt
from rlm.render.lines import Line, Piece, Style, line
from rlm.render.progress import duration
from rlm.render.safe import plain
from rlm.render.sent import sent_lines

__all__ = [
    "calls_of",
    "result_block",
    "roots",
    "session_lines",
    "spend_of",
    "tally_lines",
    "times",
    "tree",
]

_WIDTH: Final = 300
_LISTED: Final = 20
_LABELS: Final = 200
_CENTS: Final = Decimal("0.0001")
# What is no error of ours is named in receipts as Python names it.
_ENDINGS: Final = {"CancelledError": "cancelled", "KeyboardInterrupt": "cancelled"}
_STATES: Final = (
    ("matched", "matched"),
    ("not_matched", "not matched"),
    ("unsure", "unsure"),
    ("unresolved", "unresolved"),
    ("empty", "empty"),
    ("left_out", "left out"),
)


def result_block(receipts: Receipts, *, missing: Sequence[str] = ()) -> list[Line]:
    """Return what the run found, how much of it is certain, and what it cost.

    Args:
        missing: what an incomplete run says that it lacks.
    """
    result = receipts.result
    match result.get("kind"):
        case "tally":
            body = _tally(receipts, result)
        case "ranking":
            body = _ranking(receipts, result)
        case _:
            body = [line(Piece("no result", "warn"), f": {_said(receipts.task)}")]
    lines = [*body, *_blocked(receipts.blocker, missing)]
    lines += [_pair("note", _said(note)) for note in _list(result.get("notes"))]
    lines.append(_pair("cost", spend_of(receipts.totals)))
    if calls := calls_of(receipts.totals):
        lines.append(_pair("calls", calls))
    if receipts.forgotten:
        said = f"{_counted(receipts.forgotten, 'record')} on request: left out, the text is erased"
        lines.append(_pair("forgotten", said))
    lines += sent_lines(receipts)
    lines += session_lines(receipts)
    lines.append(_pair("receipt", _said(str(receipts.path))))
    return lines


def session_lines(receipts: Receipts) -> list[Line]:
    """Return the sittings that a run took; nothing where it took one."""
    if len(receipts.sessions) <= 1:
        return []
    head = _pair("sessions", f"{len(receipts.sessions):,}; cost and calls are of all")
    judges = not any(node.task for node in receipts.nodes)
    return [head, *(_session(one, judges=judges) for one in receipts.sessions[-_LISTED:])]


def tally_lines(receipts: Receipts) -> list[Line]:
    """Return a count alone: the number, the states, the coverage and the judge."""
    return _tally(receipts, receipts.result)


def tree(receipts: Receipts) -> list[Line]:
    """Return the nodes of a run as a tree, each with its time, its calls and its warnings.

    A node whose parent is missing stands at the top; none is left out.
    """
    known = {node.id for node in receipts.nodes}
    changed = {_kin(id_) for id_ in known if "~" in id_}
    below: dict[str | None, list[NodeReceipt]] = {}
    for node in receipts.nodes:
        below.setdefault(node.parent if node.parent in known else None, []).append(node)
    lines: list[Line] = []
    # A stack and no recursion: how deep a tree is was decided elsewhere.
    stack = [(node, "", "") for node in reversed(below.pop(None, []))]
    while stack:
        node, lead, hang = stack.pop()
        children = below.pop(node.id, [])
        lines.append(_node_line(node, lead))
        gap = "│  " if children else "   "
        if node.id.count(".") == 1 and _kin(node.id) in changed:
            lines.append(line(Piece(hang + gap, "dim"), Piece(_when(node))))
        lines += [line(Piece(hang + gap, "dim"), piece) for piece in _details(node)]
        turns = [("├─ ", "│  ")] * (len(children) - 1) + [("└─ ", "   ")]
        branches = [
            (child, hang + turn, hang + under)
            for child, (turn, under) in zip(children, turns, strict=False)
        ]
        stack += reversed(branches)
    return lines


def roots(receipts: Receipts) -> list[Line]:
    """Return the hashes by which two runs are compared, and a run with its files."""
    stated = (("content root", receipts.content_root), ("log root", receipts.log_root))
    return [_pair(name, _said(root)) for name, root in stated if root is not None]


def spend_of(totals: Totals) -> str:
    """Return calls, tokens and USD in words: `12 calls, 3,400 tokens, 0.0120 USD`.

    What may have been paid without an answer is told beside it: `…, and at most 0.0069 more for …`.
    """
    said = "0 calls"
    if totals.calls:
        known = "known tokens" if totals.unmetered else "tokens"
        said = f"{_counted(totals.calls, 'call')}, {totals.tokens:,} {known}, {_paid(totals)}"
    return f"{said}{_at_most(totals)}"


def calls_of(totals: Totals) -> str:
    """Return what was unusual about the calls, in words; "" when nothing was."""
    facts = (
        (totals.shared, "shared with an identical call"),
        (totals.replayed, "answered from the journal"),
        (totals.failed - totals.lost, "failed"),
        (totals.lost, "lost in flight when a process died"),
        (
            totals.unanswered,
            "attempts without an answer that may have been billed: bounds count them",
        ),
        (totals.unmetered, "without a reported usage"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in facts if count > 0)


def times(message: str, count: int) -> str:
    """Return a warning with how often it came, unless it says so itself."""
    says = count == 1 or message.startswith((f"{count} ", f"{count:,} "))
    return message if says else f"{message} ({count:,} times)"


def _paid(totals: Totals) -> str:
    if totals.unpriced and totals.unpriced >= totals.calls:
        return "price unknown"
    known = f"{totals.cost:.4f} USD"
    return f"{known} and {totals.unpriced:,} calls of unknown price" if totals.unpriced else known


def _at_most(totals: Totals) -> str:
    """Return what calls of which nothing is known may have cost on top; "" where there are none."""
    tokens = totals.lost_tokens + totals.unanswered_tokens
    usd = totals.lost_usd + totals.unanswered_usd
    which: list[str] = []
    if totals.lost:
        which.append(f"{_counted(totals.lost, 'call')} that {_were(totals.lost)} lost")
    if totals.unanswered_tokens:  # earlier versions did not say what they were charged for
        which.append(f"{_counted(totals.unanswered, 'attempt')} without an answer")
    if not which:
        return ""
    if not tokens:
        return f", and whatever {which[0]} cost"
    most = f"{_up(usd)}" if usd else f"{tokens:,} tokens"
    return f", and at most {most} more for {' and '.join(which)} (counted on the bounds)"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _up(usd: Decimal) -> str:
    """Return an amount that is not less than it is."""
    try:
        return f"{usd.quantize(_CENTS, rounding=ROUND_UP):,}"
    except InvalidOperation:  # of a receipt from elsewhere: more than anybody pays
        return f"{usd:,.4f}"


def _tally(receipts: Receipts, result: Mapping[str, object]) -> list[Line]:
    task = _said(receipts.task)
    judge = _pair("judge", _judge(receipts, result))
    if receipts.blocker == "uncalibrated-judge":
        what = f", {_int(result.get('records')):,} records scored: {task}"
        return [line(Piece("no count", "warn"), what), judge]
    labels = _mapping(result.get("labels"))
    verb = "have a label" if labels else "match"
    lines = [_headline(receipts.blocker, result, verb, task)]
    for name, number in list(labels.items())[:_LABELS]:
        lines.append(line(f"  {_int(number):>9,}  ", plain(str(name), 60)))
    lines.append(_state_line(_mapping(result.get("states"))))
    lines.append(_pair("coverage range", _coverage(result, labels=bool(labels))))
    lines.append(judge)
    expected = result.get("expected")
    if isinstance(expected, int | float):
        lines.append(
            _pair(
                "expected",
                f"{expected:,.1f}, the sum of the calibrated probabilities; far from the count, "
                "more labels are needed",
            )
        )
    for key, text in (
        ("identical", "with the text of an earlier one: judged once, counted each"),
        ("labelled", "with a person's label, which overrides the judge"),
    ):
        if number := _int(result.get(key)):
            lines.append(_pair(key, f"{_counted(number, 'record')} {text}"))
    return lines


def _headline(blocker: str | None, result: Mapping[str, object], verb: str, task: str) -> Line:
    """Return the number, or that there is none: a count with a hole is no count."""
    what = f"{verb}: {task}"
    states = _mapping(result.get("states"))
    records, low = _int(result.get("records")), _int(result.get("count"))
    unresolved = _int(states.get("unresolved"))
    if blocker is None or not unresolved:
        return line(Piece(f"{low:,}", "strong"), f" of {records:,} records {what}")
    if unresolved + _int(states.get("empty")) >= records:
        return line(Piece("no count", "warn"), f", none of {records:,} records was judged: {task}")
    high = low + _int(states.get("unsure")) + unresolved
    bounds = Piece(f"at least {low:,}, at most {high:,}", "warn")
    return line(Piece("incomplete: ", "bad"), bounds, f" of {records:,} records {what}")


def _state_line(states: Mapping[str, object]) -> Line:
    pieces: list[str | Piece] = ["  "]
    for key, name in _STATES:
        number = _int(states.get(key))
        style: Style = "warn" if number and key in {"unsure", "unresolved"} else "plain"
        pieces += [Piece(f"{number:,} {name}", style), ", "]
    return line(*pieces[:-1])


def _coverage(result: Mapping[str, object], *, labels: bool) -> str:
    bounds = [f"{_int(bound):,}" for bound in _list(result.get("coverage"))]
    if len(bounds) != 2:
        return "not stated"
    if bounds[0] == bounds[1]:
        return "every record was decided"
    what = "labelled" if labels else "matched"
    return f"{' to '.join(bounds)}: {what}, and that plus unsure and unresolved"


def _judge(receipts: Receipts, result: Mapping[str, object]) -> str:
    passes = _int(result.get("passes"))
    votes = f", votes {_said(result.get('votes'))}" if passes > 1 else ""
    server = f" at {_said(receipts.server)}" if receipts.server else ""
    return (
        f"{_said(result.get('judge'))}{server}, {passes} pass{'es' if passes != 1 else ''}{votes}"
    )


def _ranking(receipts: Receipts, result: Mapping[str, object]) -> list[Line]:
    lines = [
        line(
            Piece("no count", "warn"),
            f", {_int(result.get('records')):,} records ranked: {_said(receipts.task)}",
        )
    ]
    for entry in _list(result.get("top"))[:_LISTED]:
        row = _mapping(entry)
        score = row.get("score")
        shown = f"{score:.4f}" if isinstance(score, int | float) else "-"
        lines.append(
            line(f"  {_int(row.get('rank')):>5,}  {shown}  ", plain(str(row.get("id")), 80))
        )
    lines.append(_pair("judge", _said(result.get("judge"))))
    return lines


def _blocked(blocker: str | None, missing: Sequence[str]) -> list[Line]:
    if blocker is None:
        return []
    lines = [line("  ", Piece(f"incomplete: {_said(blocker)}", "bad"))]
    return lines + [line("    ", _said(text)) for text in missing]


def _session(session: SessionReceipt, *, judges: bool) -> Line:
    ending = "killed" if session.ended is None else (session.blocker or "completed")
    facts = [_counted(session.calls, "call")]
    if judges or session.verdicts:
        facts.append(f"{_counted(session.verdicts, 'verdict')} made")
    if session.taken_over:
        facts.append(f"{session.taken_over:,} taken over")
    if session.lost:
        facts.append(f"{_counted(session.lost, 'call')} lost")
    took = "" if session.seconds is None else f", {duration(session.seconds)}"
    began = f"{session.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    head = Piece(f"{session.number:>5}  {began}{took}  ", "dim")
    style: Style = "plain" if session.blocker is None and session.ended is not None else "warn"
    return line(head, Piece(_said(ending), style), f": {', '.join(facts)}")


def _node_line(node: NodeReceipt, lead: str) -> Line:
    facts: list[str] = []
    if node.seconds is not None:
        facts.append(duration(node.seconds))
    if node.windows:
        facts.append(f"{_counted(node.windows, 'window')}, {_counted(node.items, 'item')}")
    if node.totals.calls:
        facts.append(spend_of(node.totals))
    tail = f"  {', '.join(facts)}" if facts else ""
    name = plain(node.name or node.id, 100)
    return line(Piece(lead, "dim"), Piece(name, "strong"), Piece(tail, "dim"))


def _kin(id_: str) -> str:
    """Return the id that works share of which one took the place of the other."""
    return id_.partition("~")[0]


def _when(node: NodeReceipt) -> str:
    numbers = ", ".join(f"{number:,}" for number in node.sessions[:_LISTED])
    return f"in session{'s' if len(node.sessions) != 1 else ''} {numbers or '?'}"


def _details(node: NodeReceipt) -> Iterator[Piece]:
    for said in node.said[:_LISTED]:
        yield Piece(_said(said))
    for count, what in (
        (node.unresolved, "left unresolved"),
        (node.foreign, "not shown but answered for, dropped"),
        (node.repaired, "answered when asked again"),
    ):
        if count:
            yield Piece(f"{_counted(count, 'item')} {what}", "warn")
    if calls := calls_of(node.totals):
        yield Piece(calls, "warn")
    for message, count in list(node.warnings.items())[:_LISTED]:
        yield Piece(times(_said(message), count), "warn")
    for snippet in dict.fromkeys(plain(snippet, 80) for snippet in node.snippets):
        yield Piece(f"unreadable reply: {snippet}", "dim")
    if node.error is not None:
        yield Piece(f"ended early: {_ENDINGS.get(node.error, _said(node.error))}", "bad")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _pair(name: str, text: str) -> Line:
    return line("  ", Piece(f"{name}: ", "dim"), text)


def _said(value: object) -> str:
    return plain(str(value), _WIDTH)


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _list(value: object) -> list[object]:
    return list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else []


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
