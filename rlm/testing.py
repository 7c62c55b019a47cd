"""Public fakes for tests of your own: a scripted model, a misbehaving server, a virtual clock.

Nothing here reaches beyond loopback. A server that judges by a rule of yours:

    async def main() -> None:
        async with FakeServer(judge_server(lambda text: "fire" in text)) as server:
            model = f"openai+{server.base_url}:any"
            outcome = await rlm.count("Is it about fire?", ["a fire", "calm"], model=model)
            print(outcome.result.count)  # 1
"""

from __future__ import annotations

from executors.clock import VirtualClock
from executors.models.fakes.acts import (
    Act,
    Close,
    Completion,
    FakeCall,
    Hold,
    Reply,
    Reset,
    Steps,
    comments_for_ever,
    cut_short,
    drip,
    error_event,
    headers_only,
    held_after_done,
    rate_limited,
    refused_parameter,
    silent,
    sse,
)
from executors.models.fakes.limited import Limited, LimitKind
from executors.models.fakes.received import Received
from executors.models.fakes.scripted import ModelScript, ScriptedModel, ScriptExhausted, calls_reply
from executors.models.fakes.server import FakeServer, Script
from rlm.fakes.judge import Decide, Fault, Faults, judge_script, judge_server
from rlm.fakes.tree import (
    Part,
    TreeRole,
    answering,
    grading,
    path_of,
    planning,
    role_of,
    spawning,
    tree_script,
    tree_server,
)

__all__ = [
    "Act",
    "Close",
    "Completion",
    "Decide",
    "FakeCall",
    "FakeServer",
    "Fault",
    "Faults",
    "Hold",
    "LimitKind",
    "Limited",
    "ModelScript",
    "Part",
    "Received",
    "Reply",
    "Reset",
    "Script",
    "ScriptExhausted",
    "ScriptedModel",
    "Steps",
    "TreeRole",
    "VirtualClock",
    "answering",
    "calls_reply",
    "comments_for_ever",
    "cut_short",
    "drip",
    "error_event",
    "grading",
    "headers_only",
    "held_after_done",
    "judge_script",
    "judge_server",
    "path_of",
    "planning",
    "rate_limited",
    "refused_parameter",
    "role_of",
    "silent",
    "spawning",
    "sse",
    "tree_script",
    "tree_server",
]
