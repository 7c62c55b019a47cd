"""Scripts that play a whole tree: its workers, its planner, its verifier, its merges.

A script is made of parts, each of which answers the requests that are its business. The first that
does is heard:

    script = tree_script(spawning(3, depth=2), planning(4), grading("satisfied"))
    model = ScriptedModel(script)

Tasks that a part hands down carry the place of their node in the tree, so that no state is kept: the
same request is always answered alike, in whatever order the tree runs. Only `grading` with several
verdicts, and parts of your own, may count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

from corpus.prompts import read_items
from executors.errors import ValidationError
from executors.messages import ModelReply, ModelRequest, StopReason
from executors.models.fakes.acts import Act, Completion, FakeCall, Reply
from executors.models.fakes.received import Received
from executors.models.fakes.scripted import Turn, calls_reply
from executors.replies import JsonValue
from planner.prompts import PLANNER_SYSTEM
from rlm.checks.prompts import GRADER_SYSTEM
from rlm.recursions.prompts import MERGE

__all__ = [
    "Part",
    "TreeRole",
    "answering",
    "grading",
    "path_of",
    "planning",
    "role_of",
    "spawning",
    "tree_script",
    "tree_server",
]

TreeRole = Literal["worker", "planner", "verifier", "merge", "judge"]
Part = Callable[[ModelRequest], Turn | None]
"""Answers the requests that are its business, and returns None for all others."""
Path = tuple[int, ...]
"""Where a node stands, as the parts count: the root is (), its third child (2,)."""

_SPAWN: Final = "spawn_child"
_PLACE: Final = re.compile(r"\[part (\d+(?:\.\d+)*)\]")
_FINISH: Final[dict[StopReason, str]] = {
    "end": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def tree_script(*parts: Part, otherwise: str = "ok") -> Callable[[ModelRequest], Turn]:
    """Return a script for `ScriptedModel` that is made of parts.

    Args:
        otherwise: the text for what is no part's business.
    """

    def answer(request: ModelRequest) -> Turn:
        for part in parts:
            if (turn := part(request)) is not None:
                return turn
        return otherwise

    return answer


def tree_server(*parts: Part, otherwise: str = "ok") -> Callable[[Received], Act]:
    """Return the same as a script for `FakeServer`; an error of a part is a 500 there."""
    script = tree_script(*parts, otherwise=otherwise)
    return lambda received: _act(script(received.request))


# ---------------------------------------------------------------- parts


def spawning(
    width: int,
    *,
    depth: int,
    rounds: int = 1,
    answer: Callable[[Path], Turn] | None = None,
) -> Part:
    """Return a worker that hands its task to children, down to a depth, and joins what they say.

    Args:
        width: children a round.
        depth: level whose nodes answer by themselves; the root is level 0. So does a node that is
            offered no `spawn_child`.
        rounds: how often a node asks for as many children.
        answer: what a node without children says; None is "answer of" and its place.
    """

    def part(request: ModelRequest) -> Turn | None:
        if role_of(request) != "worker":
            return None
        path = path_of(request)
        asked = sum(len(message.calls) for message in request.messages)
        if not _offers(request) or len(path) >= depth or width < 1:
            return _said(path) if answer is None else answer(path)
        if asked < width * rounds:
            children = range(asked, asked + width)
            return calls_reply(*[(_SPAWN, {"subtask": _task((*path, n))}) for n in children])
        results = [message.content for message in request.messages if message.role == "tool"]
        return f"{_name(path)}: {'; '.join(results)}"

    return part


def answering(answer: Callable[[ModelRequest], Turn]) -> Part:
    """Return a worker that answers whatever it is asked."""
    return lambda request: answer(request) if role_of(request) == "worker" else None


def planning(steps: int | Sequence[str], *, chained: bool = False) -> Part:
    """Return a planner whose plans have so many steps, or these.

    Args:
        chained: each step waits for the one before; else none waits.
    """
    actions = [_task((n,)) for n in range(steps)] if isinstance(steps, int) else list(steps)
    plan: list[JsonValue] = [
        {"id": f"s{n}", "action": action, "depends_on": [f"s{n - 1}"] if chained and n > 1 else []}
        for n, action in enumerate(actions, 1)
    ]
    text = json.dumps({"steps": plan})
    return lambda request: text if role_of(request) == "planner" else None


def grading(*verdicts: str) -> Part:
    """Return a verifier that gives these verdicts in order; the last one for ever.

    Args:
        verdicts: "satisfied", "needs_revision", "failed"; anything else is its whole reply, so that
            a broken verifier can be played too. None at all is satisfied.
    """
    left = list(verdicts or ("satisfied",))

    def part(request: ModelRequest) -> Turn | None:
        if role_of(request) != "verifier":
            return None
        verdict = left.pop(0) if len(left) > 1 else left[0]
        if verdict not in ("satisfied", "needs_revision", "failed"):
            return verdict
        score = {"satisfied": 1.0, "needs_revision": 0.5, "failed": 0.0}[verdict]
        critique = "" if verdict == "satisfied" else f"the script says: {verdict}"
        return json.dumps(
            {"critique": critique, "suggestions": [], "score": score, "status": verdict}
        )

    return part


# ---------------------------------------------------------------- reading requests


def role_of(request: ModelRequest) -> TreeRole:
    """Return who is asked, by the system prompt; whoever is nobody else is a worker."""
    first = request.messages[0]
    told = first.content if first.role == "system" else ""
    if told.startswith(_beginning(PLANNER_SYSTEM)):
        return "planner"
    if told.startswith(_beginning(GRADER_SYSTEM)):
        return "verifier"
    if told == MERGE:
        return "merge"
    try:
        read_items(request)
    except ValidationError:
        return "worker"
    return "judge"


def path_of(request: ModelRequest) -> Path:
    """Return where the asked node stands, by the mark in its task; () where there is none."""
    asked = next((one.content for one in request.messages if one.role == "user"), "")
    found = _PLACE.search(asked)
    return () if found is None else tuple(map(int, found[1].split(".")))


def _beginning(prompt: str) -> str:
    return prompt.partition("\n")[0]


def _offers(request: ModelRequest) -> bool:
    return any(tool.name == _SPAWN for tool in request.tools)


def _name(path: Path) -> str:
    return ".".join(map(str, path)) or "root"


def _task(path: Path) -> str:
    return f"[part {_name(path)}] Design and implement this part of the whole."


def _said(path: Path) -> str:
    return f"answer of {_name(path)}"


def _act(turn: Turn) -> Act:
    match turn:
        case str():
            return Completion(text=turn)
        case ModelReply():
            bad = turn.malformed
            return Completion(
                text=turn.text,
                calls=turn.calls if bad is None else [FakeCall(bad.name, bad.raw, "call-0")],
                finish=_FINISH.get(turn.stop, turn.stop_raw or turn.stop),
                reasoning=turn.reasoning,
            )
        case Exception():
            body = json.dumps({"error": {"message": f"failed, as told: {turn}"}})
            return Reply(status=500, body=body.encode())
