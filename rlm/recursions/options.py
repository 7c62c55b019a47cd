"""How a task is taken apart, checked before anything is spent; and what a child inherits of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from inspect import isasyncgenfunction
from math import isfinite
from typing import Any, Final, Literal, Self, cast, get_args

from corpus.questions import require_encodable
from corpus.sources import SourceLike
from corpus.votes import VOTES, Votes
from executors.coroutines import is_async
from executors.errors import ValidationError
from executors.loop.worker import Tools, check_tools
from executors.replies import JsonValue
from executors.tools.arguments import check_schema
from executors.tools.base import Tool
from planner.families import Mode
from planner.routes import Retrieval
from rlm.checks.evaluator import Evaluate
from rlm.checks.refinement import RefineLeaf
from rlm.corpora import Corpus
from rlm.synthesis import Synthesize

__all__ = ["KEPT", "SPAWN", "Kept", "OnDuplicate", "RecurseOptions"]

OnDuplicate = Literal["refuse", "suffix"]
_STRIPPED: Final = (
    "contract", "evaluate", "count", "mode", "retrieval", "corpus", "window", "passes", "run",
)  # fmt: skip
"""What speaks of the one task that it was given with, and so of none of its children's."""
_RECORDED: Final = (
    "mode", "count", "retrieval", "contract", "persona", "context", "max_depth", "max_nodes",
    "rounds", "worker_budget", "window", "passes", "votes", "max_tokens", "temperature", "synthesize",
    "planner_rules", "on_duplicate",
)  # fmt: skip
_CEILINGS: Final = {
    "max_nodes": 100_000,
    "worker_budget": 10_000_000,
    "window": 10_000,
    "passes": 100,
    "max_tokens": 1_000_000,
    "rounds": 10_000,
}


class Kept(Enum):
    """Stands for a corpus that nobody has to read again."""

    CORPUS = "the records that the run has read"


KEPT: Final = Kept.CORPUS
SPAWN: Final = "spawn_child"
"""The tool by which a worker hands parts of its task to children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurseOptions:
    """Options of `rlm.recurse`; see there for what each one means."""

    corpus: SourceLike | Corpus | Kept | None = None
    mode: Mode | None = None
    count: int | None = None
    retrieval: Retrieval | None = None
    contract: str | None = None
    evaluate: Evaluate | None = None
    refine_leaf: RefineLeaf | None = None
    synthesize: Synthesize | None = None
    persona: str | None = None
    context: str | None = None
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = ()
    max_depth: int = 3
    max_nodes: int = 256
    rounds: int = 100
    worker_budget: int = 100
    window: int = 8
    passes: int = 2
    votes: Votes = "any"
    temperature: float | None = None
    max_tokens: int = 4_096
    planner_rules: bool = False
    on_duplicate: OnDuplicate = "refuse"
    run: str | os.PathLike[str] | None = None

    _child: Self | None = field(default=None, init=False, compare=False, repr=False)
    """What `for_child` has found, once."""

    def __post_init__(self) -> None:
        for name, choices in (
            ("mode", get_args(Mode)),
            ("retrieval", get_args(Retrieval)),
        ):
            value: object = getattr(self, name)
            if value is not None and value not in choices:
                raise ValidationError(
                    f"{name}={value!r}", hint=f"choose one of {', '.join(choices)}"
                )
        if self.votes not in VOTES:
            raise ValidationError(f"votes={self.votes!r}", hint=f"choose one of {', '.join(VOTES)}")
        if self.on_duplicate not in get_args(OnDuplicate):
            raise ValidationError(
                f"on_duplicate={self.on_duplicate!r}", hint="choose one of refuse, suffix"
            )
        for name, high in _CEILINGS.items():
            _integer(name, getattr(self, name), 1, high)
        _integer("max_depth", self.max_depth, 0, 32)
        if self.count is not None:
            _integer("count", self.count, 1, 10_000)
        for name in ("contract", "persona", "context"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValidationError(f"{name}={value!r}"[:200], hint="give text")
            blank = value is None or not value.strip()
            object.__setattr__(self, name, None if blank else str(value).strip())
            require_encodable(getattr(self, name) or "", name)
        self._refuse_odd()
        self._refuse_without_effect()

    def _refuse_odd(self) -> None:
        """Refuse what is no value of its kind at all."""
        heat: object = self.temperature
        if heat is not None and not _is_heat(heat):
            raise ValidationError(
                f"temperature={heat!r}"[:200],
                hint="give a number from 0 on, or None for the model's own",
            )
        if not isinstance(cast("object", self.planner_rules), bool):
            raise ValidationError(
                f"planner_rules={self.planner_rules!r}"[:200], hint="give True or False"
            )
        run: object = self.run
        if run is not None and (not isinstance(run, str | os.PathLike) or not _names(run)):
            raise ValidationError(f"run={run!r}"[:200], hint="name a directory (--run DIR)")
        object.__setattr__(self, "tools", _tools(self.tools))

    def _refuse_without_effect(self) -> None:
        if self.corpus is None:
            for name in ("retrieval",):
                if getattr(self, name) is not None:
                    raise ValidationError(
                        f"retrieval={self.retrieval!r} has no effect: there is no corpus",
                        hint="give one with corpus= (--corpus), or leave it out",
                    )
            if self.mode == "partition":
                raise ValidationError(
                    "mode='partition' partitions a corpus, and there is none",
                    hint="give one with corpus= (--corpus), or choose mode='fanout'",
                )
        self._refuse_other_ways()
        if self.evaluate is not None and not callable(self.evaluate):
            raise ValidationError(f"evaluate={self.evaluate!r}"[:200], hint="give a function")
        chosen: object = self.synthesize
        if chosen is not None and not callable(chosen) and chosen not in ("concat", "merge"):
            raise ValidationError(
                f"synthesize={chosen!r} is an unknown strategy"[:200],
                hint="choose 'concat' or 'merge', or give a function",
            )
        if self.refine_leaf is not None and not isinstance(self.refine_leaf, RefineLeaf):
            raise ValidationError(
                f"refine_leaf={self.refine_leaf!r}"[:200], hint="give RefineLeaf(sensor=…)"
            )

    def _refuse_other_ways(self) -> None:
        """Refuse a way into the corpus that parts do not go."""
        ways: dict[Mode, tuple[Retrieval | None, ...]] = {
            "partition": (None, "scan", "read"),
            "fanout": (None, "read"),
        }
        forced: Mode | None = self.mode or (None if self.count is None else "fanout")
        if forced is not None and self.retrieval not in ways[forced]:
            hint = "leave it out, or choose retrieval='read'; without a mode each way is open"
            if forced == "fanout":
                hint = (
                    "leave it out, or choose mode='partition': a partition counts ('scan') or shows "
                    "('read') every record in parts"
                )
            raise ValidationError(
                f"retrieval={self.retrieval!r} has no effect on a {forced}: each part has its own "
                "records",
                hint=hint,
            )

    def for_child(self) -> Self:
        """Return what a child inherits: the one place that says so.

        Persona, context, tools, leaf refinement, synthesis, depth and bounds go down. What speaks
        of the one task stays: its contract and evaluation, its width, mode, retrieval and corpus.
        """
        if self._child is None:
            silent = RecurseOptions()
            stripped = {name: getattr(silent, name) for name in _STRIPPED}
            # A child of a child inherits all that its parent has: there is nothing left to strip.
            same = all(getattr(self, name) == value for name, value in stripped.items())
            object.__setattr__(self, "_child", self if same else replace(self, **stripped))
        assert self._child is not None
        return self._child

    @property
    def shown(self) -> dict[str, str]:
        """What was asked for, as text, for receipts: only what differs from silence."""
        silent = RecurseOptions()
        texts = {
            one.name: _as_text(getattr(self, one.name))
            for one in fields(self)
            if one.name not in ("run", "corpus", "_child")
            and getattr(self, one.name) != getattr(silent, one.name)
        }
        return {"max_depth": str(self.max_depth), "max_nodes": str(self.max_nodes), **texts}

    def recorded(self) -> tuple[dict[str, JsonValue], dict[str, str]]:
        """Return what a later session needs: values by name, and what objects there were."""
        values: dict[str, JsonValue] = {"has_corpus": self.corpus is not None}
        objects: dict[str, str] = {}
        for name in _RECORDED:
            value: object = getattr(self, name)
            if callable(value):
                objects[name] = _as_text(value)
            else:
                values[name] = cast("JsonValue", value)
        for name in ("evaluate", "refine_leaf"):
            if (value := getattr(self, name)) is not None:
                objects[name] = _as_text(value)
        if callable(self.tools) or len(self.tools):
            objects["tools"] = "tools of the caller's"
        return values, objects

    @classmethod
    def of_record(cls, values: Mapping[str, object], **overrides: object) -> Self:
        """Return the options of an earlier session, with changes.

        Raises:
            ValidationError: a value that no longer is one.
        """
        given: dict[str, Any] = {n: values[n] for n in _RECORDED if n in values}
        given.update(overrides)
        return cls(**given)


def _tools(given: object) -> Tools:
    """Return tools that are ones, as they are now, or the function that gives them.

    Raises:
        ValidationError: they are something else, or one of them stands for ours.
    """
    hint = "give a list of rlm.tool(function), or a plain function that returns one"
    if callable(given):
        if is_async(given) or isasyncgenfunction(given):
            raise ValidationError(f"tools={given!r} is asynchronous"[:200], hint=hint)
        return cast("Tools", given)
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ValidationError(f"tools={given!r}"[:200], hint=hint)
    tools = tuple(cast("Sequence[Tool]", given))
    check_tools(tools)
    for tool in tools:
        if tool.name == SPAWN:
            raise ValidationError(
                f"a tool is named {tool.name!r}, as the one by which workers hand on is",
                hint="give it another name",
            )
        check_schema(tool)
    return tools


def _is_heat(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and isfinite(cast("float", value)) and cast("float", value) >= 0


def _names(path: object) -> bool:
    """Whether a path is one that a file system can hold."""
    text = os.fspath(cast("os.PathLike[str]", path))
    return isinstance(cast("object", text), str) and bool(text) and "\0" not in text


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, tuple | list):
        return f"{len(cast('Sequence[object]', value))} given"
    return str(getattr(value, "__name__", None) or type(value).__name__)


def _integer(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValidationError(f"{name}={value!r}", hint=f"give an integer from {low} to {high:,}")
