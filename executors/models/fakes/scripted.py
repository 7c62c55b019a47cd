"""A scripted model in this process: the public fake of tests, demos and benchmarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import anyio.lowlevel

from executors.clock import Clock, SystemClock
from executors.makers import maker
from executors.messages import ModelReply, ModelRequest, ToolCall
from executors.models.base import ModelInfo
from executors.replies import JsonValue, canonical_json
from executors.tokens import estimate
from executors.usage import Usage

__all__ = ["ModelScript", "ScriptExhausted", "ScriptedModel", "Turn", "calls_reply"]

Turn = ModelReply | str | Exception
"""What one call does: answer, answer with plain text, or raise."""
ModelScript = Callable[[ModelRequest], Turn] | Iterable[Turn] | str
"""A function of the request, turns in order, or one text for every call."""

# Requests that are kept to look at; the count goes on.
_KEPT = 1_000
_reply, _usage = maker(ModelReply), maker(Usage)


class ScriptExhausted(AssertionError):
    """More calls came than the script has turns: a fault of the test, never of a model."""


class ScriptedModel:
    """Answers from a script and records what it was asked.

    Args:
        script: what to answer; see `ModelScript`.
        latency: seconds that each call takes on the clock.
        clock: where the latency is slept; None is the machine's.
    """

    def __init__(
        self,
        script: ModelScript = "ok",
        *,
        name: str = "scripted",
        latency: float = 0.0,
        clock: Clock | None = None,
        context_window: int | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        self._turn = _as_function(script)
        self._latency = latency
        self._clock = clock or SystemClock()
        self._info = ModelInfo(
            provider="scripted",
            name=name,
            origin="in-process",
            context_window=context_window,
            structured_output=True,
            max_concurrency=max_concurrency,
        )
        self.requests: deque[ModelRequest] = deque(maxlen=_KEPT)
        """The last requests."""
        self.calls = 0
        self.in_progress = 0
        self.peak = 0
        """The most calls that were in progress together."""

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def generate(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        self.requests.append(request)
        self.in_progress += 1
        self.peak = max(self.peak, self.in_progress)
        try:
            if self._latency > 0:
                await self._clock.sleep(self._latency)
            else:
                await anyio.lowlevel.checkpoint()
            return _as_reply(self._turn(request), request)
        finally:
            self.in_progress -= 1

    async def aclose(self) -> None:
        pass


def calls_reply(
    *pairs: tuple[str, Mapping[str, JsonValue]], text: str = "", usage: Usage | None = None
) -> ModelReply:
    """Return a turn that wants tools run: pairs of name and arguments, in order.

    The ids of the calls are `call-0`, `call-1`, … in each reply.

    Args:
        usage: None counts what is written, and no prompt.
    """
    calls = tuple(
        ToolCall(id=f"call-{n}", name=name, arguments=canonical_json(dict(arguments)))
        for n, (name, arguments) in enumerate(pairs)
    )
    written = text + "".join(call.name + call.arguments for call in calls)
    return ModelReply(
        text=text,
        stop="tool_use",
        calls=calls,
        usage=usage or Usage(input=0, output=estimate(written)),
    )


def _as_function(script: ModelScript) -> Callable[[ModelRequest], Turn]:
    if isinstance(script, str):
        return lambda _: script
    if callable(script):
        return script
    turns = iter(script)

    def next_turn(_: ModelRequest) -> Turn:
        for turn in turns:
            return turn
        raise ScriptExhausted("the script has no turn left")

    return next_turn


def _as_reply(turn: Turn, request: ModelRequest) -> ModelReply:
    if isinstance(turn, Exception):
        raise turn
    if isinstance(turn, ModelReply):
        return turn
    prompt = sum([len(message.content) for message in request.messages])
    return _reply(
        text=turn,
        stop="end",
        usage=_usage(input=prompt // 3 + 1, output=len(turn) // 3 + 1),
        temperature=request.temperature,
    )
