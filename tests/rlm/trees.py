"""Scripted models for task trees: one script a role, told apart by what they are sent."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from executors.messages import ModelReply, ModelRequest, StopReason, ToolCall
from executors.models.fakes.scripted import Turn
from executors.usage import Usage
from rlm.testing import ScriptedModel, judge_script

SIMPLE: Final = "list the open files"
COMPLEX: Final = "design and implement a notification pipeline across the entire system"
CRITICAL: Final = "investigate the security breach"
USAGE: Final = Usage(input=10, cache_read=3, output=5)

Script = Callable[[ModelRequest], Turn]


def said(text: str, *, stop: StopReason = "end") -> ModelReply:
    """A turn that calls for nothing."""
    return ModelReply(text=text, stop=stop, usage=USAGE)


def calls(name: str, *arguments: Mapping[str, object], text: str = "") -> ModelReply:
    """A turn that calls one tool, once for each set of arguments."""
    made = tuple(
        ToolCall(id=f"c{n}", name=name, arguments=json.dumps(one))
        for n, one in enumerate(arguments)
    )
    return ModelReply(text=text, stop="tool_use", usage=USAGE, calls=made)


def spawns(*subtasks: str, text: str = "") -> ModelReply:
    """A turn that hands parts to children."""
    return calls("spawn_child", *({"subtask": one} for one in subtasks), text=text)


def plan(*actions: str) -> ModelReply:
    """A planner's turn."""
    steps: list[dict[str, object]] = [
        {"id": f"s{n}", "action": a, "depends_on": []} for n, a in enumerate(actions)
    ]
    return said(json.dumps({"steps": steps}))


def grade(status: str, critique: str = "") -> ModelReply:
    """A grader's turn."""
    body: dict[str, object] = {
        "critique": critique,
        "suggestions": [],
        "score": 1.0,
        "status": status,
    }
    return said(json.dumps(body))


def role_of(request: ModelRequest) -> str:
    """Return who is asked."""
    system = request.messages[0].content
    for words, role in (
        ("You split a goal", "planner"),
        ("You check a result", "verifier"),
        ("You put the answers", "merge"),
        ("You judge text", "judge"),
    ):
        if words in system:
            return role
    return "worker"


def task_of(request: ModelRequest) -> str:
    """Return the task that a worker was given."""
    return request.messages[1].content


def results_of(request: ModelRequest) -> list[str]:
    """Return what tools have answered so far."""
    return [message.content for message in request.messages if message.role == "tool"]


def cast(
    worker: Script | str = "done",
    *,
    planner: Script | None = None,
    verifier: Script | None = None,
    merge: Script | None = None,
    judge: Callable[[str], bool] | None = None,
    latency: float = 0.0,
) -> ScriptedModel:
    """A model that plays every role by a script of its own."""
    by_role: dict[str, Script] = {
        "worker": worker if callable(worker) else lambda _: said(str(worker)),
        "planner": planner or (lambda r: plan(*(f"list slice {n}" for n in range(wanted(r))))),
        "verifier": verifier or (lambda _: grade("satisfied")),
        "merge": merge or (lambda _: said("merged")),
        "judge": judge_script(judge or (lambda text: "fire" in text)),
    }
    return ScriptedModel(lambda request: by_role[role_of(request)](request), latency=latency)


def wanted(request: ModelRequest) -> int:
    """Return how many steps a planner is told to write."""
    found = re.search(r"EXACTLY (\d+)", request.messages[0].content)
    return int(found[1]) if found else 2


def asked(model: ScriptedModel, role: str) -> list[ModelRequest]:
    """Return the requests to one role, in their order."""
    return [request for request in model.requests if role_of(request) == role]
