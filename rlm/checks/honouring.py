"""Whether what was handed over is what was asked for: honoured, or broke and where.

There is no third answer. Whatever is not plainly honoured broke: a reply that is cut, empty,
unreadable or in other words is kept apart by a flag, and never speaks for the artifact.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from executors.calls.calls import Answer, Calls
from executors.errors import ValidationError
from executors.ids import NodeId
from executors.messages import ModelReply, ModelRequest
from executors.models.base import Model, require_model
from executors.models.prices import Price, PriceList
from executors.replies import JsonValue, Parsed, read_json
from planner.results import is_count
from rlm.checks.exhibit import exhibit
from rlm.checks.prompts import HONOUR, honour_messages
from rlm.lone_calls import lone_calls, run_or_lone

__all__ = ["Broke", "Honoured", "Ruling", "Where", "honours", "judge"]

_ROOT: Final = NodeId("root")
_HONOURED: Final = frozenset({"honored", "honoured"})
_BROKE: Final = "broke"
_SHOWN: Final = 600  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What was not honoured; each "" where the judge does not say."""

    field: str = ""
    stated: str = ""
    """What the request states."""
    returned: str = ""
    """What stands there instead."""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Honoured:
    """All that the request states is met."""

    cost: Decimal | None = None
    """USD of the judge's call; None where price or usage is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """It is not, or nobody could say that it is."""

    where: Where
    cost: Decimal | None = None
    truncated: bool = False
    """The judge's reply was cut, or empty: it says nothing of the artifact."""
    unreadable: bool = False
    """It came to an end and was no verdict."""

    @property
    def usable(self) -> bool:
        """Whether the judge said so, and not just nothing else."""
        return not (self.truncated or self.unreadable)


Ruling = Honoured | Broke


async def judge(
    request: str,
    artifact: object,
    *,
    model: Model,
    calls: Calls | None = None,
    prices: Price | PriceList | None = None,
    node: NodeId = _ROOT,
    ordinal: int = 0,
    max_tokens: int = 512,
) -> Ruling:
    """Say whether an artifact honours a request, in one call.

    Args:
        artifact: text or any value; "" and 0 are artifacts, None is none.
        calls: the pipeline to ask through; one of its own where there is none.
        prices: what the model costs, where the pipeline is its own; None knows no price.
        ordinal: another one is another sample.

    Raises:
        ValidationError: no request, no artifact, no model, or a bound that is none; nothing was
            asked.
        ModelError: the judge could not be asked.
        Halted: a bound of the run was reached.
    """
    _check(request, artifact)
    require_model(model, where="rlm.judge")
    if not is_count(max_tokens):
        raise ValidationError(
            f"max_tokens={max_tokens!r}", where="rlm.judge", hint="give 1 or more"
        )
    if calls is not None and prices is not None:
        raise ValidationError(
            "calls= and prices= are both given",
            where="rlm.judge",
            hint="give prices= to the pipeline, or leave calls= out",
        )
    asked = ModelRequest(
        messages=honour_messages(request=request, artifact=exhibit(artifact)),
        max_tokens=max_tokens,
        temperature=0.0,
        schema=HONOUR if model.info.structured_output else None,
    )
    answer = await (calls or run_or_lone(lambda: lone_calls(prices=prices))).ask(
        model, asked, role="verifier", node=node, ordinal=ordinal
    )
    return _ruling(answer)


def honours(
    request: str, *, model: Model, calls: Calls | None = None
) -> Callable[[object], Awaitable[bool]]:
    """Return a predicate for an Evaluator: whether a result honours the request.

    Its model should be one that `calibrate` admits. Where the judge gives no verdict it raises, so
    that the evaluation is broken and the result is not.

    Raises:
        ValidationError: no request, or no model.
    """
    _check(request, "")
    require_model(model, where="rlm.honours")

    async def predicate(result: object) -> bool:
        ruling = await judge(request, "" if result is None else result, calls=calls, model=model)
        if isinstance(ruling, Broke) and not ruling.usable:
            raise ValueError("the judge gave no verdict")
        return isinstance(ruling, Honoured)

    return predicate


def _ruling(answer: Answer) -> Ruling:
    reply, cost = answer.reply, answer.cost
    if reply.stop == "max_tokens" or not reply.text.strip():
        return Broke(where=Where(), cost=cost, truncated=True)
    fields = _fields(reply)
    verdict = fields.get("verdict")
    if isinstance(verdict, str) and verdict in _HONOURED:
        return Honoured(cost=cost)
    return Broke(where=_where(fields.get("where")), cost=cost, unreadable=verdict != _BROKE)


def _fields(reply: ModelReply) -> dict[str, JsonValue]:
    if not reply.whole:
        return {}
    found = read_json(reply.text)
    return found.value if isinstance(found, Parsed) and isinstance(found.value, dict) else {}


def _where(value: JsonValue) -> Where:
    if isinstance(value, str):
        return Where(evidence=value[:_SHOWN])
    if not isinstance(value, dict):
        return Where()
    texts = {key: held[:_SHOWN] for key, held in value.items() if isinstance(held, str)}
    return Where(
        field=texts.get("field", ""),
        stated=texts.get("stated", ""),
        returned=texts.get("returned", ""),
        evidence=texts.get("evidence", ""),
    )


def _check(request: object, artifact: object) -> None:
    if not isinstance(request, str) or not request.strip():
        raise ValidationError(
            f"request={request!r} is no request"[:200],
            where="rlm.judge",
            hint="give the text of it",
        )
    if artifact is None:
        raise ValidationError(
            "artifact=None is no artifact", where="rlm.judge", hint="give what was handed over"
        )
