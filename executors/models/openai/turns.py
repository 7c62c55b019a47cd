"""An assistant's turn that wants tools run: as it comes, whole or by deltas, and as it goes back.

With such a turn some servers want back what they sent beside it (thoughts, signatures), or refuse
the next request. It is kept as it came, and only the model that it came from ever gets it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from executors.messages import Message, ProviderBlocks
from executors.models.openai.shapes import listed, mapping, text_of
from executors.models.tool_calls import RawCall

__all__ = ["PROVIDER", "Turn", "TurnFold", "as_sent", "turn_of"]

PROVIDER: Final = "openai"
_THOUGHTS: Final = ("reasoning_content", "reasoning")
_DETAILS: Final = "reasoning_details"
_EXTRA: Final = "extra_content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a turn holds besides its text."""

    calls: tuple[RawCall, ...] = ()
    beside: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields of the message that go back with it; `tool_calls` lists those of each call."""

    def blocks(self, model: str) -> ProviderBlocks | None:
        """Return what goes back; None where nothing has to."""
        if not self.calls or not self.beside:
            return None
        return ProviderBlocks(provider=PROVIDER, model=model, data=json.dumps(self.beside))


def turn_of(message: Mapping[str, object]) -> Turn:
    """Return the calls of a whole message."""
    fold = TurnFold()
    if fold.add(message, whole=True):
        return fold.turn()
    return _NONE


_NONE: Final = Turn()


@dataclass(slots=True)
class _Open:
    """A call that is still being written."""

    id: str = ""
    name: object = None
    text: list[str] = field(default_factory=list[str])
    value: object = None
    extra: object = None

    def raw(self) -> RawCall:
        arguments = "".join(self.text) if self.value is None else self.value
        return RawCall(id=self.id, name=self.name, arguments=arguments)


class TurnFold:
    """Adds up the calls of a stream's deltas.

    Servers differ: the index may be missing, or the same for calls that come whole; id and name may
    be repeated with each delta. A delta that brings another id and a name begins another call.
    """

    def __init__(self) -> None:
        self._calls: list[_Open] = []
        self._at: dict[int, _Open] = {}
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[object] = []

    def add(self, delta: Mapping[str, object], *, whole: bool = False) -> bool:
        """Take a delta, or all of a message, and say whether any call stands in it."""
        for name in _THOUGHTS:
            if thought := delta.get(name):
                self._thoughts.setdefault(name, []).append(text_of(thought))
        self._details.extend(listed(delta.get(_DETAILS)))
        entries = listed(delta.get("tool_calls"))
        for entry in entries:
            self._take(mapping(entry), whole=whole)
        older = mapping(delta.get("function_call"))
        if older:
            self._take({"index": 0, "function": older}, whole=whole)
        return bool(entries or older)

    def turn(self) -> Turn:
        """Return the whole."""
        if not self._calls:
            return _NONE
        beside: dict[str, object] = {
            name: "".join(parts) for name, parts in self._thoughts.items() if any(parts)
        }
        if self._details:
            beside[_DETAILS] = self._details
        if any(call.extra is not None for call in self._calls):
            beside["tool_calls"] = [call.extra for call in self._calls]
        return Turn(calls=tuple(call.raw() for call in self._calls), beside=beside)

    def _take(self, entry: Mapping[str, object], *, whole: bool) -> None:
        function = mapping(entry.get("function"))
        id_, name = entry.get("id"), function.get("name")
        call = self._open(entry.get("index"), id_, name, whole=whole)
        if isinstance(id_, str) and id_:
            call.id = id_
        if name and name != call.name:
            # Some send the name in pieces as well.
            call.name = (
                call.name + name if isinstance(call.name, str) and isinstance(name, str) else name
            )
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.text.append(arguments)
        elif arguments is not None:
            call.value = arguments
        call.extra = entry.get(_EXTRA) or call.extra

    def _open(self, index: object, id_: object, name: object, *, whole: bool) -> _Open:
        """Return the call that a delta belongs to, or a new one."""
        found = self._at.get(index) if isinstance(index, int) else None
        if found is None and not isinstance(index, int) and self._calls and not (id_ or name):
            found = self._calls[-1]
        another = found is not None and id_ and name and found.id not in ("", id_)
        if found is None or another or whole:
            found = _Open()
            self._calls.append(found)
        if isinstance(index, int):
            self._at[index] = found
        return found


def as_sent(message: Message, model: str) -> dict[str, object]:
    """Return a turn as JSON for a model of this provider."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls: list[dict[str, object]] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in message.calls
    ]
    beside = _beside(message.blocks, model)
    for call, extra in zip(
        calls, cast("Sequence[object]", beside.pop("tool_calls", ())), strict=False
    ):
        if extra is not None:
            call[_EXTRA] = extra
    return {
        "role": message.role,
        "content": message.content or None,
        "tool_calls": calls,
        **beside,
    }


def _beside(blocks: ProviderBlocks | None, model: str) -> dict[str, object]:
    if blocks is None or (blocks.provider, blocks.model) != (PROVIDER, model):
        return {}
    return cast("dict[str, object]", json.loads(blocks.data))
