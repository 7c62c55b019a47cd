"""The child process in which llama.cpp runs: no network, no keys, one call at a time.

A line of JSON in, a line of JSON out. The first line in is an EngineSetup; the first line out says
whether it is ready. It ends when its input ends, in the middle of a call too, so it never outlives
its parent. Its working directory is its own: the parent made it for this process alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, NoReturn

from executors.models.local.backends import SOCKET, Engine, EngineRefusal, EngineSetup, Job
from executors.models.local.isolation import cut_network
from executors.models.local.prompts import PromptMaker

__all__ = ["Answerer", "main"]

Fields = Mapping[str, Any]


class Answerer:
    """Answers lines with an engine."""

    def __init__(self, engine: Engine, setup: EngineSetup) -> None:
        self._engine = engine
        self._window = setup.window
        self._prompts = PromptMaker(engine, chat=setup.chat_template is not None)

    def answer(self, question: Fields) -> dict[str, object]:
        """Return the fields of a reply: what was asked for, or a refusal with its kind."""
        try:
            if question["op"] == "tokenize":
                text: str = question["text"]
                return {"tokens": self._engine.tokenize(text, special=False, bos=False)}
            return asdict(self._engine.complete(self._job(question)))
        except EngineRefusal as refusal:
            return {"refusal": refusal.kind, "what": refusal.what}

    def _job(self, question: Fields) -> Job:
        segments = self._prompts.segments([(role, text) for role, text in question["turns"]])
        prompt = sum(map(len, segments))
        reserve = int(question["max_tokens"])
        if not segments:
            raise EngineRefusal("rejected", "the prompt is empty")
        # Checked before the engine sees it: what goes over the window may be cut, or end the process.
        if prompt + reserve > self._window:
            raise EngineRefusal(
                "context",
                f"a prompt of {prompt:,} tokens and {reserve:,} reserved for the answer do not fit "
                f"the window of {self._window:,} tokens",
            )
        return Job(
            segments=segments,
            max_tokens=reserve,
            temperature=question["temperature"],
            seed=question["seed"],
            schema=question["schema"],
            top=question["top"],
            stop=tuple(question["stop"]),
        )


def main() -> NoReturn:
    """Serve the parent until it closes its end."""
    lines, out = _private_streams()
    cut_network()
    questions: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(lines, questions), daemon=True).start()
    setup = EngineSetup(**json.loads(questions.get()))
    try:
        answerer = Answerer(_open(setup), setup)
    except EngineRefusal as refusal:
        _say(out, {"refusal": refusal.kind, "what": refusal.what})
        _vanish()
    _say(out, {"ready": True})
    while True:
        _say(out, answerer.answer(json.loads(questions.get())))


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for ourselves: whatever native code prints goes to errors."""
    lines = os.fdopen(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return lines, out


def _listen(lines: Iterable[bytes], questions: SimpleQueue[bytes]) -> None:
    for line in lines:
        questions.put(line)
    _vanish()


def _vanish() -> NoReturn:
    """End at once: the engines' threads and destructors have nothing to save."""
    with suppress(OSError):  # the parent removes it as well, if it still lives
        Path(SOCKET).unlink(missing_ok=True)
        Path.cwd().rmdir()
    os._exit(0)


def _open(setup: EngineSetup) -> Engine:
    # Each engine loads its own native code; only the one that is wanted may be installed.
    match setup.backend:
        case "xllamacpp":
            from executors.models.local.server import ServerEngine

            return ServerEngine(setup)
        case "llama-cpp-python":
            from executors.models.local.native import NativeEngine

            return NativeEngine(setup)


def _say(out: BinaryIO, fields: Mapping[str, object]) -> None:
    out.write(json.dumps(fields).encode() + b"\n")
    out.flush()


if __name__ == "__main__":
    main()
