"""Whether a model answers: one tiny request within tight bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import anyio

from executors.calls.calls import Answer, Calls
from executors.clock import Clock, SystemClock
from executors.endpoint.endpoint import RetryPolicy
from executors.errors import RlmError
from executors.events import Event
from executors.gate.allowance import Caps, CapsAllowance
from executors.ids import NodeId
from executors.messages import Message, ModelRequest
from executors.models.base import Model
from rlm.doctor import Finding
from rlm.render.safe import plain

__all__ = ["PROBE_CAPS", "probe"]

PROBE_CAPS: Final = Caps(calls=1, tokens=1_000, usd=Decimal("0.05"), seconds=60.0)
"""What finding out may cost at most."""

_REQUEST: Final = ModelRequest(
    messages=(Message(role="user", content="Answer with the one word: yes"),),
    max_tokens=64,
)
_CLOSING_SECONDS: Final = 5.0


async def probe(model: Model, *, clock: Clock | None = None) -> Finding:
    """Ask a model once and say what came of it; the model is closed afterwards."""
    clock = clock or SystemClock()
    calls = Calls(
        allowance=CapsAllowance(PROBE_CAPS, clock, scope="this check"),
        emit=_ignore,
        clock=clock,
        retry=RetryPolicy(attempts=1),
    )
    started = clock.monotonic()
    topic = f"model {plain(model.info.spec, 80)}"
    try:
        with anyio.fail_after(PROBE_CAPS.seconds):
            answer = await calls.ask(model, _REQUEST, role="worker", node=NodeId("root"))
    except TimeoutError:
        text = f"no answer within {PROBE_CAPS.seconds:g} s"
        return Finding(topic=topic, status="bad", text=text, hint="is the server busy or loading?")
    except RlmError as error:
        where = f" ({error.where})" if error.where else ""
        return Finding(topic=topic, status="bad", text=f"{error.what}{where}", hint=error.hint)
    finally:
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await model.aclose()
    text = _told(answer, clock.monotonic() - started)
    return Finding(topic=topic, status="ok", text=text)


def _told(answer: Answer, seconds: float) -> str:
    reply = answer.reply
    text = plain(reply.text.strip(), 40)
    words = f'answers "{text}"' if text else "answers nothing"
    end = "" if reply.stop == "end" else f", ended by {reply.stop!r}"
    tokens = reply.usage.total
    used = "tokens not reported" if tokens is None else f"{tokens:,} tokens"
    cost = "price unknown" if answer.cost is None else f"{answer.cost:.6f} USD"
    return f"{words} in {seconds:.1f} s{end}; {used}, {cost}"


def _ignore(event: Event) -> None:
    """Take an event of a check that keeps no receipt."""
