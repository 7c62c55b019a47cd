"""Workers with scripted models, and everything that they did in view."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypedDict, Unpack

from executors.engine.stop import Stop
from executors.events import ToolFinished, Warned
from executors.gate.governor import Governor
from executors.ids import NodeId
from executors.journal.records import NoJournal
from executors.loop import AskPerson, Guards, Policy, Transcript, Worked, Worker, work
from executors.messages import Message, ModelReply, StopReason, ToolCall
from executors.models.fakes.scripted import ModelScript
from executors.replies import JsonValue
from executors.tools.base import Arguments, Execute, Tool, ToolContext
from executors.usage import Usage
from tests.executors.benches import Bench

ANY: Final = {"type": "object"}


def call(
    name: str, arguments: Mapping[str, object] | str | None = None, key: str = "c0"
) -> ToolCall:
    """Return a call; a text stands for itself."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=key, name=name, arguments=text)


def calls(*wanted: ToolCall | str, text: str = "", stop: StopReason = "tool_use") -> ModelReply:
    """Return a reply that calls for tools; a name stands for a call without arguments."""
    made = [call(one) if isinstance(one, str) else one for one in wanted]
    numbered = tuple([replace(one, id=f"c{index}") for index, one in enumerate(made)])
    usage = Usage(input=10, output=2)
    return ModelReply(text=text, stop=stop, calls=numbered, usage=usage)


def said(text: str = "done", stop: StopReason = "end") -> ModelReply:
    """Return a reply without calls."""
    return ModelReply(text=text, stop=stop, usage=Usage(input=10, output=2))


def then_done(*turns: ModelReply) -> ModelScript:
    """Return a script that ends after these turns."""
    return [*turns, said("done")]


def a_tool(
    name: str = "look",
    execute: Execute | None = None,
    *,
    parameters: Mapping[str, object] | None = None,
    parallel: bool = False,
    paths: Callable[[Arguments], Collection[str]] | None = None,
    idempotent: bool = False,
    replays: bool = False,
) -> Tool:
    """Return a tool that takes anything and gives its own name."""

    async def itself(arguments: Arguments, context: ToolContext) -> object:
        return name

    return Tool(
        name=name,
        description="",
        parameters=parameters or ANY,
        execute=execute or itself,
        parallel=parallel,
        paths=paths,
        idempotent=idempotent,
        replays=replays,
    )


class Options(TypedDict, total=False):
    """What a test may say of a worker besides its tools."""

    policy: Policy | None
    ask: AskPerson | None
    governor: Governor | None
    context: Mapping[str, JsonValue]
    temperature: float | None
    max_tokens: int
    guards: Guards
    on_text: Callable[[str], None] | None
    stop: Stop | None
    ordinal: int


class Shop:
    """A worker's surroundings: a scripted model, and what happened."""

    def __init__(
        self,
        script: ModelScript,
        *tools: Tool,
        thunk: Callable[[], Sequence[Tool]] | None = None,
        journal: NoJournal | None = None,
        **options: Unpack[Options],
    ) -> None:
        self.bench = Bench(script, journal=journal)
        self.model = self.bench.model
        self.transcript = Transcript()
        self.worker = Worker(
            calls=self.bench.calls,
            model=self.model,
            node=NodeId("root"),
            depth=0,
            tools=thunk or tools,
            system="you work",
            **options,
        )

    async def work(self, *messages: Message) -> Worked:
        """Let it work, on "go" where no messages are given."""
        given = messages or (Message(role="user", content="go"),)
        return await work(self.worker, given, transcript=self.transcript)

    def ends(self) -> list[tuple[str, str]]:
        """Return tool and end of each call that ended, as the events say it."""
        return [(e.tool, e.end) for e in self.bench.events if isinstance(e, ToolFinished)]

    def warnings(self) -> list[str]:
        """Return the codes of all warnings."""
        return [e.code for e in self.bench.events if isinstance(e, Warned)]

    def results(self) -> list[str]:
        """Return what the model read of its calls, in order."""
        return [turn.content for turn in self.transcript.turns if turn.role == "tool"]


def is_sealed(turns: Sequence[Message]) -> bool:
    """Whether each call is followed by exactly one result, and no result stands alone."""
    wanted: list[str | None] = []
    for turn in turns:
        if turn.role == "tool":
            if not wanted or wanted.pop(0) != turn.call_id:
                return False
        else:
            if wanted:
                return False
            wanted = [call.id for call in turn.calls]
    return not wanted


def raising(error: BaseException) -> Callable[[Arguments, ToolContext], object]:
    """Return what a tool does that raises."""

    async def execute(arguments: Arguments, context: ToolContext) -> object:
        raise error

    return execute
