"""`work`: a model is asked, what it calls for is run, and it is asked again, until something ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio.lowlevel

from executors.boundary import Raised, attempt_now, described
from executors.calls.log import Answer
from executors.characters import sound
from executors.errors import ContextExceeded, Halted, ModelError, ToolBroken, ValidationError
from executors.events import Warned
from executors.loop.calling import Calling
from executors.loop.streaks import Streak, Streaks
from executors.loop.tally import Tally
from executors.loop.toolbox import Toolbox
from executors.loop.transcript import Transcript, replayable, sealed
from executors.loop.worked import Ended, EndedBy, Finished, Worked
from executors.loop.worker import Worker
from executors.messages import MalformedCall, Message, ModelReply, ModelRequest
from executors.wrappings import Piece, after_leading, thoughts

__all__ = ["work"]

_NO_RESULT: Final = "[no result: the call was cut off]"
_UNREAD: Final = (
    "Your call of the tool {name!r} could not be read: {reason}. Nothing that you called for in that "
    "turn was run. Call it again, with arguments that are one complete JSON object."
)
_NO_CALL: Final = MalformedCall(
    name="", raw="", reason="the turn said that it calls for a tool, and no call came with it"
)


async def work(
    worker: Worker, messages: Sequence[Message], *, transcript: Transcript | None = None
) -> Worked:
    """Let a worker do what the messages say, whatever end that takes.

    The model's and the tools' faults are ends or results, never raised. Calls of a round that was
    cut or refused are not run.

    Args:
        messages: what comes after the system prompt. Calls in it without a result get one that
            says so.
        transcript: an empty one of the caller's, to have the turns also where it is cancelled.

    Raises:
        ValidationError: one of the tools is none, its schema is broken, or the provider cannot take
            it; or the transcript holds turns already. Nothing was spent.
        UsageError: another worker is at work on the transcript.
    """
    turns = Transcript() if transcript is None else transcript
    with turns.held():
        if turns.turns:
            raise ValidationError(
                f"the transcript holds {len(turns.turns)} turn(s) already",
                hint="give a new one, and the former turns as messages",
            )
        return await _Working(worker, messages, turns).to_its_end()


class _Working:
    """The state of one worker at work."""

    def __init__(self, worker: Worker, messages: Sequence[Message], transcript: Transcript) -> None:
        guards = worker.guards
        self._worker = worker
        self._transcript = transcript
        governor = worker.governor
        offers = None if governor is None else governor.offers
        self._toolbox = Toolbox(worker.tools, self._warned, offers)
        self._tally = Tally(temperature=worker.temperature)
        self._malformed = Streak(guards.malformed)
        self._streaks = Streaks(
            denials=guards.denials,
            identical_errors=guards.identical_errors,
            identical_calls=guards.identical_calls,
        )
        self._text = ""
        self._on_text = worker.on_text
        self._heard_now: list[str] = []
        """Text of the round in progress, where it is watched."""
        if worker.system.strip():
            transcript.add(Message(role="system", content=worker.system))
        transcript.add(*sealed(messages, _NO_RESULT))

    async def to_its_end(self) -> Worked:
        try:
            return await self._rounds()
        except Halted as halt:
            return self._ended("halted", halt.bound, halt)
        except BaseException:
            self._transcript.seal("[cut off]")
            raise

    async def _rounds(self) -> Worked:
        stop = self._worker.stop
        for number in range(self._worker.guards.rounds):
            # A tool that made a result of its cancellation must not be given more to do.
            await anyio.lowlevel.checkpoint()
            if stop is not None and stop.asked:
                return self._ended("stopped", stop.error().limit)
            self._toolbox.refresh()
            try:
                answer = await self._asked()
            except ContextExceeded as error:
                return self._ended("context-exceeded", error.what, error)
            except ModelError as error:
                self._text = "".join(self._heard_now).strip() or self._text
                return self._ended("failed", error.code, error)
            end = await self._heard(answer.reply, number)
            if end is not None:
                return end
        return self._ended("rounds", str(self._worker.guards.rounds))

    async def _asked(self) -> Answer:
        worker = self._worker
        self._heard_now.clear()
        request = ModelRequest(
            messages=self._transcript.turns,
            max_tokens=worker.max_tokens,
            temperature=worker.temperature,
            tools=self._toolbox.specs,
        )
        answer = await worker.calls.ask(
            worker.model,
            request,
            role=worker.role,
            node=worker.node,
            ordinal=worker.ordinal,
            on_text=None if self._on_text is None else self._hear,
        )
        self._tally.answered(answer)
        self._text = _answer_of(answer.reply) or self._text
        return answer

    def _hear(self, text: str) -> None:
        """Hand on a piece of text, until the listener's own fault: what is paid for outlives it."""
        self._heard_now.append(text)
        if self._on_text is None:
            return
        got = attempt_now(self._on_text, text)
        if isinstance(got, Raised):
            self._on_text = None
            self._warned("on-text", f"on_text heard nothing more: {described(got.error)}")

    async def _heard(self, reply: ModelReply, number: int) -> Worked | None:
        """Take in one reply; return the end where it is one."""
        if reply.stop in _CUT:
            self._say(reply)
            return self._ended(_CUT[reply.stop], reply.stop)
        if reply.malformed is not None:
            return self._unread(reply, reply.malformed)
        if reply.calls:
            self._malformed.broken()
            return await self._called(reply, number)
        match reply.stop:
            case "pause":
                self._say(reply)
                return None
            case "tool_use":
                return self._unread(reply, _NO_CALL)
            case "other" if reply.stop_raw is not None:
                self._say(reply)
                return self._ended("failed", f"stop:{reply.stop_raw[:80]}")
            case _:
                return self._last(reply)

    def _last(self, reply: ModelReply) -> Worked:
        self._say(reply)
        text = _answer_of(reply)
        if not text:
            return self._ended("empty", reply.stop_raw or reply.stop)
        return Finished(text=text, log=self._tally.log(self._transcript.turns))

    def _unread(self, reply: ModelReply, malformed: MalformedCall) -> Worked | None:
        """Tell the model what could not be read; what it wrote there is never replayed."""
        self._tally.malformed.append(malformed)
        self._say(reply)
        if self._malformed.again("malformed"):
            return self._ended("malformed", malformed.name)
        text = _UNREAD.format(name=malformed.name[:80], reason=malformed.reason)
        self._transcript.add(Message(role="user", content=text))
        return None

    async def _called(self, reply: ModelReply, number: int) -> Worked | None:
        for call in reply.calls:
            self._tally.called(call.name)
        self._transcript.add(
            Message(
                role="assistant",
                content=reply.text,
                calls=replayable(reply.calls),
                blocks=reply.blocks,
            )
        )
        calling = Calling(
            self._worker, self._toolbox, self._streaks, round_=number, warn=self._warned
        )
        try:
            tripped = await calling.run(reply.calls)
        finally:
            self._transcript.add(*calling.turns(reply.calls))
        if tripped is None:
            return None
        return self._ended(tripped.reason, tripped.detail, tripped.error)

    def _say(self, reply: ModelReply) -> None:
        """Keep a turn without calls, where there is anything in it."""
        if reply.text.strip() or reply.blocks is not None:
            self._transcript.add(Message(role="assistant", content=reply.text, blocks=reply.blocks))

    def _ended(
        self, reason: EndedBy, detail: str, error: ModelError | Halted | ToolBroken | None = None
    ) -> Ended:
        self._transcript.seal(f"[{reason}:{detail}]")
        log = self._tally.log(self._transcript.turns)
        return Ended(reason=reason, detail=detail, error=error, text=self._text, log=log)

    def _warned(self, code: str, message: str) -> None:
        calls, node = self._worker.calls, self._worker.node
        calls.emit(Warned(node=node, at=calls.clock.now(), code=code, message=message))


_CUT: Final[dict[str, EndedBy]] = {
    "max_tokens": "truncated",
    "refusal": "refused",
    "context_exceeded": "context-exceeded",
}


def _answer_of(reply: ModelReply) -> str:
    """Return what a reply says behind the reasoning that it begins with."""
    return sound(after_leading(Piece(0, reply.text), thoughts(reply.text)).text)
