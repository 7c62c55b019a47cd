"""A tool that runs programs: each as a list of words, without a shell, and bounded in every way.

It is no sandbox: a program does whatever its user may do. Which ones run is for a gate to say.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Final, cast

import anyio

from executors.errors import ValidationError
from executors.secrets import mask
from executors.tools.base import Arguments, Tool, ToolContext
from executors.tools.rooted import NotDone, Root

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process

__all__ = ["ShellBounds", "shell_tool"]

_ENVIRONMENT: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_WORDS: Final = 100_000  # characters of all words
_GRACE: Final = 0.5  # seconds for what a program left behind to close its output
_LAST: Final = 5.0  # seconds for the system to end what was killed
_DESCRIPTION: Final = (
    "Run a program and give its exit code and output. argv is the program and its arguments, one word "
    "each; no shell reads them, so that there are no pipes, wildcards or variables."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellBounds:
    """How long one program may run, and how much it may say."""

    seconds: float = 60.0
    """At their end it is killed, with all that it began in its own process group."""
    output: int = 16_000
    """Bytes of each of its two outputs that are kept: the beginning and the end."""

    def __post_init__(self) -> None:
        for name in ("seconds", "output"):
            value: object = getattr(self, name)
            wrong = isinstance(value, bool) or not isinstance(value, int | float)
            if wrong or not math.isfinite(cast("float", value)) or cast("float", value) <= 0:
                raise ValidationError(
                    f"{name}={value!r} is no bound of a program",
                    hint="give a finite number above 0",
                )


def shell_tool(
    root: str | os.PathLike[str],
    *,
    name: str = "run",
    environment: Sequence[str] | Mapping[str, str] = _ENVIRONMENT,
    bounds: ShellBounds | None = None,
) -> Tool:
    """Make a tool that runs programs in a folder.

    Args:
        root: where they run; the model may choose a folder below it.
        environment: names of variables that they see of ours, or variables with values. Whatever is not
            named here they do not see, and what holds a key of ours they do not see either.

    Raises:
        ValidationError: the folder is not there, or a name that no variable has.
    """
    folder = Root(root)
    return Tool(
        name=name,
        description=_DESCRIPTION,
        parameters={
            "type": "object",
            "properties": {
                "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "cwd": {"type": "string", "description": "A folder, from the root on."},
            },
            "required": ["argv"],
            "additionalProperties": False,
        },
        execute=_Running(
            root=folder, environment=_named(environment), bounds=bounds or ShellBounds()
        ),
        kind="bash",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """Runs programs."""

    root: Root
    environment: Sequence[str] | Mapping[str, str]
    bounds: ShellBounds

    async def __call__(self, arguments: Arguments, context: ToolContext) -> dict[str, object]:
        """Run one, to its end or to the bound.

        Raises:
            NotDone: it cannot be started.
        """
        del context
        argv = _words(arguments.get("argv"))
        parts = self.root.parts(arguments.get("cwd", ""))
        with self.root.folder(parts):  # it is there, and no link leads to it
            process = await self._started(argv, str(self.root.path.joinpath(*parts)))
        out, err = _Kept(self.bounds.output), _Kept(self.bounds.output)
        late = await self._followed(process, out, err)
        given: dict[str, object] = {
            "exit": process.returncode,
            "stdout": out.text,
            "stderr": err.text,
        }
        if late:
            given["killed"] = f"it ran for more than {self.bounds.seconds:g} s"
        return given

    async def _started(self, argv: Sequence[str], cwd: str) -> Process:
        try:
            return await anyio.open_process(
                argv, stdin=DEVNULL, cwd=cwd, env=_values(self.environment), start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NotDone(f"{argv[0][:200]!r} cannot be started: {why}") from None

    async def _followed(self, process: Process, out: _Kept, err: _Kept) -> bool:
        """Wait for a program, keep what it says, and leave nothing of it behind."""
        late = True
        try:
            async with anyio.create_task_group() as readers:
                if process.stdout is not None and process.stderr is not None:
                    readers.start_soon(out.read, process.stdout)
                    readers.start_soon(err.read, process.stderr)
                with anyio.move_on_after(self.bounds.seconds):
                    await process.wait()
                    late = False
                _kill(process)
                # What left its group may hold the outputs open for ever.
                readers.cancel_scope.deadline = anyio.current_time() + _GRACE
        finally:
            _kill(process)
            with anyio.move_on_after(_LAST, shield=True):
                await process.aclose()
        return late


@dataclass(slots=True, eq=False)
class _Kept:
    """The beginning and the end of what a program says; the middle is counted and dropped."""

    most: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    said: int = 0

    async def read(self, stream: ByteReceiveStream) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in stream:
                self.take(chunk)

    def take(self, chunk: bytes) -> None:
        self.said += len(chunk)
        room = max(0, self.most // 2 - len(self.head))
        self.head += chunk[:room]
        self.tail += chunk[room:]
        if len(self.tail) > self.most:
            del self.tail[: -(self.most - self.most // 2)]

    @property
    def text(self) -> str:
        tail = self.tail[-(self.most - self.most // 2) :]
        left_out = self.said - len(self.head) - len(tail)
        note = f"\n[… {left_out:,} bytes are left out …]\n" if left_out else ""
        whole = bytes(self.head) + note.encode("utf-8") + bytes(tail)
        return whole.decode("utf-8", "replace")


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _words(argv: object) -> list[str]:
    words = cast("list[object]", argv) if isinstance(argv, list) else []
    texts = [word for word in words if isinstance(word, str) and "\0" not in word]
    if not texts or len(texts) < len(words) or not texts[0].strip():
        raise NotDone("argv is a list of texts: a program and its arguments")
    if sum(map(len, texts)) > _WORDS:
        raise NotDone(f"argv has more than {_WORDS:,} characters")
    return texts


# ---------------------------------------------------------------- environment


def _named(given: Sequence[str] | Mapping[str, str]) -> Sequence[str] | Mapping[str, str]:
    names: Sequence[object] = [given] if isinstance(given, str) else list(given)
    wrong = [one for one in names if not isinstance(one, str) or not one or set("=\0") & set(one)]
    if wrong or isinstance(given, str):
        raise ValidationError(
            f"environment={given!r} names no variables"[:300],
            hint="give names such as ['PATH', 'LANG'], or values: {'LANG': 'C.UTF-8'}",
        )
    return dict(given) if isinstance(given, Mapping) else tuple(given)


def _values(environment: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(environment, Mapping):
        return dict(environment)
    found = {name: os.environ[name] for name in environment if name in os.environ}
    found = {name: value for name, value in found.items() if mask(value) == value}
    if "PATH" in environment:
        found["PATH"] = _path(found.get("PATH", os.defpath))
    return found


def _path(value: str) -> str:
    """Leave out folders that depend on where a program runs: what lies there might be a model's."""
    return os.pathsep.join(one for one in value.split(os.pathsep) if one.startswith("/"))
