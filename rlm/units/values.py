"""What travels between the coordinator of a count and its units, all of it as JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from corpus.questions import OneOf, Question, YesNo
from corpus.windows import Cut
from executors.endpoint.retry import RetryPolicy
from executors.gate.allowance import Drawn, Estimate
from executors.journal.json_lines import decode, encode
from executors.models.prices import Price
from executors.replies import JsonValue

__all__ = ["ENTRY", "BlockRef", "BlockReport", "LeaseAsk", "RunOptions"]

ENTRY: Final = "rlm.units:judge_block"

_Fields: TypeAlias = dict[str, JsonValue]
Done: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRef:
    """One block of one pass: where it stands in the agenda of its session."""

    pass_index: int
    first: int
    """Place of its first record in the order of the pass."""
    size: int
    """Records."""
    agenda: str | None
    """Name of the agenda's file in the run directory; None for all that need a verdict."""
    done: str
    """Which of its records have a verdict: bits in base64; "" for none."""
    known: bool
    """The coordinator has answers for it, which the unit asks for before it begins."""

    @staticmethod
    def pack(done: Done) -> str:
        """Return which records are done as text."""
        return b64encode(np.packbits(done).tobytes()).decode() if bool(done.any()) else ""

    def unpack(self) -> Done:
        """Return which records are done, by place."""
        if not self.done:
            return np.zeros(self.size, dtype=np.bool_)
        bits = np.frombuffer(b64decode(self.done), dtype=np.uint8)
        return np.unpackbits(bits, count=self.size).astype(np.bool_)

    def to_json(self) -> _Fields:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def of_json(cls, fields: Mapping[str, JsonValue]) -> Self:
        """Read what `to_json` returned."""
        return cls(**cast("dict[str, Any]", dict(fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What all units of a session share. Of a key it holds the variable's name at most."""

    directory: str
    token: str
    """Stands in a file of the run directory; who reads it there shares the disk."""
    run: str
    session: int
    question: Question
    passes: int
    options: Mapping[str, JsonValue]
    """As `CountOptions.recorded` gives them."""
    price: Price | None
    retry: RetryPolicy
    cut: Cut
    judge: str
    """Identity of the judge that is wanted."""
    node: str
    """The node of the run that judges; passes are its children."""
    grace: float
    """Seconds that calls in flight may take when the run is stopped."""
    data: Mapping[str, JsonValue] | None = None
    """Where texts may go, and what is masked in them, by the run's gate; None where there is none."""

    def to_json(self) -> _Fields:
        """Return it as JSON."""
        question = self.question
        labels = list(question.labels) if isinstance(question, OneOf) else []
        return {
            "directory": self.directory,
            "token": self.token,
            "run": self.run,
            "session": self.session,
            "question": question.text,
            "labels": cast("JsonValue", labels),
            "passes": self.passes,
            "options": dict(self.options),
            "price": None if self.price is None else _texts(asdict(self.price)),
            "retry": asdict(self.retry),
            "cut": asdict(self.cut),
            "judge": self.judge,
            "node": self.node,
            "grace": self.grace,
            "data": None if self.data is None else dict(self.data),
        }

    @classmethod
    def of_json(cls, fields: Mapping[str, JsonValue]) -> Self:
        """Read what `to_json` returned."""
        values = cast("dict[str, Any]", dict(fields))
        text, labels = values.pop("question"), cast("list[str]", values.pop("labels"))
        question = OneOf(text=str(text), labels=tuple(labels)) if labels else YesNo(text=str(text))
        price = cast("dict[str, str | None] | None", values.pop("price"))
        tiers = {} if price is None else {n: v and Decimal(v) for n, v in price.items()}
        retry = cast("dict[str, int]", values.pop("retry"))
        cut = cast("dict[str, Any]", values.pop("cut"))
        return cls(
            question=question,
            price=None if price is None else Price(**cast("dict[str, Any]", tiers)),
            retry=RetryPolicy(**retry),
            cut=Cut(**cut),
            **values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """What came out of a block, by place in it. What is in none of these was never judged."""

    values: Mapping[int, JsonValue]
    """Verdicts, as `Ledger.restore` takes them."""
    early: tuple[int, ...]
    """Matches by some of a record's parts, where the others were not judged."""
    unresolved: Mapping[str, tuple[int, ...]]
    """By reason."""
    drawn: Drawn
    """What the unit used since its last report on its lease."""

    def to_json(self) -> _Fields:
        """Return it as JSON."""
        return {
            "places": cast("JsonValue", list(self.values)),
            "values": list(self.values.values()),
            "early": cast("JsonValue", list(self.early)),
            "unresolved": {why: cast("JsonValue", list(p)) for why, p in self.unresolved.items()},
            "drawn": _texts(asdict(self.drawn)),
        }

    @classmethod
    def of_json(cls, fields: Mapping[str, JsonValue]) -> Self:
        """Read what `to_json` returned."""
        places, values, early = (
            cast("list[int]", fields[name]) for name in ("places", "values", "early")
        )
        unresolved = cast("dict[str, list[int]]", fields["unresolved"])
        return cls(
            values=dict(zip(places, cast("list[JsonValue]", values), strict=True)),
            early=tuple(early),
            unresolved={why: tuple(places) for why, places in unresolved.items()},
            drawn=_drawn(fields["drawn"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseAsk:
    """What a unit says when it wants its next lease."""

    drawn: Drawn
    need: Estimate | None
    """The worst case of a call that waits for room."""
    refused: bool
    """A server refused a call since the last lease."""
    idle: bool = False
    """Nothing is in flight, and no call begins before the answer: what it holds may go to others."""

    def to_bytes(self) -> bytes:
        """Return it as JSON."""
        need = None if self.need is None else _texts(asdict(self.need))
        return encode(
            {
                "drawn": _texts(asdict(self.drawn)),
                "need": need,
                "refused": self.refused,
                "idle": self.idle,
            }
        )

    @classmethod
    def of_bytes(cls, raw: bytes) -> Self:
        """Read what `to_bytes` returned."""
        fields = cast("dict[str, JsonValue]", decode(raw))
        need = cast("dict[str, str | None] | None", fields["need"])
        return cls(
            drawn=_drawn(fields["drawn"]),
            need=None
            if need is None
            else Estimate(
                calls=int(need["calls"] or 0),
                tokens=int(need["tokens"] or 0),
                usd=None if (usd := need["usd"]) is None else Decimal(usd),
            ),
            refused=bool(fields["refused"]),
            idle=bool(fields["idle"]),
        )


def _texts(fields: Mapping[str, object]) -> _Fields:
    """Return amounts as JSON holds them: those of money as text, which loses nothing."""
    return {
        name: str(value) if isinstance(value, Decimal) else cast("JsonValue", value)
        for name, value in fields.items()
    }


def _drawn(value: JsonValue) -> Drawn:
    fields = cast("dict[str, int | str]", value)
    return Drawn(
        calls=int(fields["calls"]), tokens=int(fields["tokens"]), usd=Decimal(fields["usd"])
    )
