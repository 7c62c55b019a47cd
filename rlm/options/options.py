"""What a caller may choose about a count, checked before anything is read or spent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, Self, cast, get_args

from corpus.judges.base import JudgeKind
from corpus.questions import require_encodable
from corpus.votes import VOTES, Votes
from executors.clock import Clock, SystemClock
from executors.coroutines import is_async
from executors.endpoint.buckets import Limits
from executors.endpoint.endpoint import RetryPolicy
from executors.engine.dask_address import place_of
from executors.engine.stop import Stop
from executors.errors import ValidationError
from executors.events import Event
from executors.gate.allowance import Caps
from executors.models.base import Model
from executors.models.encoders.load import Encoder
from executors.models.prices import Price, PriceList
from executors.replies import JsonValue
from rlm.labels import AskLabels, Label
from rlm.options.gates import GateLike, Human, gate_name, require_gate
from rlm.options.records import is_recordable, record_of, value_of
from rlm.options.top_up import BudgetChange, topped
from rlm.runs.home import named_run

__all__ = ["LOCAL", "CountOptions", "LabelsLike", "OnDuplicate", "Predicate"]

Predicate = Callable[[str], bool | str]
"""The caller's rule: True or False for a YesNo, a label for a OneOf."""
OnDuplicate = Literal["refuse", "suffix"]
LOCAL: Final = "local"
"""The engine that is this process."""
LabelsLike = str | os.PathLike[str] | Mapping[str, str] | tuple[Label, ...]
"""A labels file, the name of a column of the source, or labels by record id."""

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "engine": (str,),
    "model": (str, Model),
    "key_env": (str,),
    "judge": (str,),
    "labels": (str, os.PathLike, Mapping, tuple),
    "positive": (str,),
    "description": (str,),
    "caps": (Caps,),
    "limits": (Limits,),
    "run": (str, os.PathLike),
    "replay": (str, os.PathLike),
}
_SPELT: Final = {"prices": "--price", "limits": "--rpm, --tpm"}
"""How the command line spells options that have another name there."""
_SHOWN: Final = (
    "model", "judge", "encoder", "words", "labels", "positive", "description", "terms",
    "passes", "votes",
    "window", "window_tokens", "concurrency", "engine", "quotes", "on_duplicate",
)  # fmt: skip
_RECORDED: Final = (
    "model", "key_env", "judge", "encoder", "words", "positive", "description", "terms",
    "passes", "votes", "window", "window_tokens", "concurrency", "engine", "quotes", "caps", "prices",
    "limits", "on_duplicate", "cache", "replay",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions:
    """Options of `rlm.count`; see there for what each one means."""

    model: str | Model | None = None
    key_env: str | None = None
    judge: JudgeKind | Predicate | None = None
    encoder: str | Encoder | None = None
    words: int = 60
    labels: LabelsLike | None = None
    positive: str | None = None
    ask_labels: AskLabels | None = None
    description: str | None = None
    terms: tuple[str, ...] = ()
    passes: int = 2
    votes: Votes = "any"
    window: int | None = None
    window_tokens: int = 6_000
    concurrency: int = 16
    engine: str = LOCAL
    quotes: bool = False
    caps: Caps = field(default_factory=Caps)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    prices: Price | PriceList | None = None
    limits: Limits | None = None
    on_duplicate: OnDuplicate = "refuse"
    run: str | os.PathLike[str] | None = None
    cache: bool = True
    replay: str | os.PathLike[str] | None = None
    on_event: Callable[[Event], None] | None = None
    stop: Stop | None = None
    gate: GateLike | None = None
    human: Human | None = None
    top_up: BudgetChange | None = None
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", _terms(self.terms))
        for name, kinds in _KINDS.items():
            _kind(name, getattr(self, name), kinds)
        if self.replay is not None:
            object.__setattr__(self, "replay", _recording(self.replay, self.run))
        _one_of("votes", self.votes, VOTES)
        _one_of("on_duplicate", self.on_duplicate, get_args(OnDuplicate))
        if not isinstance(self.encoder, str | None) and not hasattr(self.encoder, "encode"):
            raise ValidationError(
                f"encoder={self.encoder!r}"[:200], hint="give a spec such as 'encoder:minilm'"
            )
        if not isinstance(self.prices, Price | None) and not hasattr(self.prices, "price"):
            raise ValidationError(
                f"prices={self.prices!r}"[:200], hint="give a Price, or a list such as a PriceTable"
            )
        if isinstance(self.judge, str):
            _one_of("judge", self.judge, get_args(JudgeKind))
        if self.engine != LOCAL:
            place_of(self.engine)
        for name, high in (
            ("passes", 100),
            ("concurrency", 4_096),
            ("window", 10_000),
            ("words", 512),
        ):
            value: object = getattr(self, name)
            if value is not None:
                _integer(name, value, high)
        _integer("window_tokens", self.window_tokens, 10_000_000)
        require_gate(self.gate, self.human)
        object.__setattr__(self, "caps", topped(self.caps, self.top_up))
        if self.on_event is not None and is_async(self.on_event):
            raise ValidationError(
                f"on_event={self.on_event!r} is asynchronous",
                hint="give a plain function; it may put the event into a queue that others await",
            )
        for what in ("description", "positive", "key_env"):
            require_encodable(getattr(self, what) or "", what)
        for term in self.terms:
            require_encodable(term, "a term")
        self._refuse_without_effect()

    def _refuse_without_effect(self) -> None:
        """Refuse what would be passed over in silence: whoever gave it expects another count."""
        by_rule = callable(self.judge) or self.judge == "rule" or (not self.judge and self.terms)
        if by_rule:
            given = {
                "model": self.model is not None,
                "key_env": self.key_env is not None,
                "encoder": self.encoder is not None,
                "quotes": self.quotes,
            }
            for name in filter(given.__getitem__, given):
                _without_effect(name, "a rule judges", "or give no terms (--terms) and no rule")
        elif self.terms:
            _without_effect("terms", f"the {self.judge} judge takes none", "or leave out --judge")
        if self.model is None:
            for name in ("key_env", "prices", "limits"):
                if getattr(self, name) is not None:
                    _without_effect(name, "no model is named", "or name one with model= (--model)")
        if self.positive is not None and self.labels is None and self.ask_labels is None:
            _without_effect(
                "positive", "there are no labels", "or give labels= (--labels or --label N)"
            )

    def recorded(self) -> tuple[dict[str, JsonValue], dict[str, str]]:
        """Return what a later session needs to go on: values by name, and what objects there were.

        Of labels only that there were some: those that were gathered stand in the run itself.
        """
        values: dict[str, JsonValue] = {}
        objects: dict[str, str] = {}
        for name in _RECORDED:
            value: object = getattr(self, name)
            if is_recordable(value):
                values[name] = record_of(value)
            else:
                objects[name] = _as_text(value)
        if self.labels is not None:
            objects["labels"] = _as_text(self.labels)
        elif self.ask_labels is not None:
            objects["labels"] = "a person who is asked"
        return values, objects

    @classmethod
    def of_record(cls, values: Mapping[str, object], **overrides: object) -> Self:
        """Return the options of an earlier session, with changes.

        Raises:
            ValidationError: a value that no longer is one.
        """
        given: dict[str, Any] = {
            name: value_of(name, values[name])
            for name in _RECORDED
            if name in values and name not in overrides
        }
        changes: dict[str, Any] = {**given, **overrides}
        return replace(cls(), **changes)

    @property
    def shown(self) -> dict[str, str]:
        """What was asked for, as text, for receipts: only what differs from silence."""
        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name in _SHOWN}
        texts = {name: _as_text(value) for name, value in said.items() if value not in (None, ())}
        if self.engine == LOCAL:
            del texts["engine"]
        if self.gate is not None:
            texts["gate"] = gate_name(self.gate)
        caps = self.caps
        if self.limits is not None:
            texts["limits"] = _limits(self.limits)
        texts["bounds"] = (
            f"{caps.calls:,} calls, {caps.tokens:,} tokens, {caps.usd} USD, {caps.seconds:g} s"
        )
        return texts


def _recording(replay: str | os.PathLike[str], run: str | os.PathLike[str] | None) -> str:
    """Return the run that is replayed by its whole path; a replay has a directory of its own."""
    recorded = named_run(replay).absolute()
    require_encodable(str(recorded), "replay")
    if run is not None and Path(run).resolve() == recorded.resolve():
        raise ValidationError(
            f"run={str(run)!r} is the run that is replayed, where nothing is written",
            hint="name another directory with run= (--run), or none",
        )
    return str(recorded)


def _limits(limits: Limits) -> str:
    known = {"requests": limits.rpm, "tokens": limits.tpm}
    return ", ".join(f"{n:,.12g} {what} a minute" for what, n in known.items() if n is not None)


def _as_text(value: object) -> str:
    match value:
        case str() | int() | float() | Path():
            # Names of files may hold stray bytes, which a receipt cannot.
            return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
        case Model():
            return value.info.spec
        case tuple():
            items = cast("tuple[object, ...]", value)
            texts = [item for item in items if isinstance(item, str)]
            return ", ".join(texts) if len(texts) == len(items) else f"{len(items)} given"
        case Mapping():
            return f"{len(cast('Mapping[str, str]', value))} given"
        case _:
            return str(getattr(value, "__name__", None) or getattr(value, "name", type(value)))


def _terms(value: object) -> tuple[str, ...]:
    many = isinstance(value, list | tuple)
    items = tuple(cast("Sequence[object]", value)) if many else (value,)
    texts = [item for item in items if isinstance(item, str) and item.strip()]
    if len(texts) != len(items):
        raise ValidationError(
            f"terms={value!r}", hint="give words, as in terms=('refund', 'money')"
        )
    return tuple(texts)


def _kind(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if (
        value is not None
        and not isinstance(value, kinds)
        and not (name == "judge" and callable(value))
    ):
        known = " or ".join(kind.__name__ for kind in kinds)
        raise ValidationError(
            f"{name} is a {type(value).__name__}: {value!r}"[:200], hint=f"give {known}"
        )


def _without_effect(name: str, why: str, otherwise: str) -> NoReturn:
    option = _SPELT.get(name) or f"--{name.replace('_', '-')}"
    raise ValidationError(
        f"{name} ({option}) has no effect: {why}", hint=f"leave it out, {otherwise}"
    )


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValidationError(f"{name}={value!r}", hint=f"choose one of {', '.join(choices)}")


def _integer(name: str, value: object, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= high:
        raise ValidationError(f"{name}={value!r}", hint=f"give an integer from 1 to {high:,}")
