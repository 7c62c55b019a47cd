"""What a tool is: a name, a schema of its arguments, and the function that does it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast, get_type_hints

from executors.errors import ValidationError
from executors.ids import NodeId
from executors.messages import ToolSpec
from executors.replies import JsonValue

__all__ = ["Arguments", "Execute", "Tool", "ToolContext", "tool"]

Arguments = Mapping[str, JsonValue]
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Where a call of a tool happens."""

    node: NodeId
    depth: int
    round: int
    """Of the worker, from 0."""
    index: int
    """Of the call within its round, from 0."""
    call_id: str


Execute = Callable[[Arguments, ToolContext], Awaitable[object] | object]
"""Does the call. Text is what the model reads; any other value reaches it as JSON. A plain function
runs in a worker thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something that a worker may call.

    Raises:
        ValidationError: a name that no provider takes, or parameters that are no object schema.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema of an object; arguments that do not fit it never reach `execute`."""
    execute: Execute
    parallel: bool = False
    """Its calls of one round may run side by side with others that are parallel."""
    paths: Callable[[Arguments], Collection[str]] | None = None
    """What a call touches: parallel calls that share one run one after another."""
    idempotent: bool = False
    """Running it twice does no more than once, so that after a crash it may be run again."""
    replays: bool = False
    """It is run again on every resume, since what it asks for is in the journal call by call."""
    spec: ToolSpec = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValidationError(
                f"{name!r} is no name of a tool",
                hint="take 1 to 64 of letters, digits, _ and -",
            )
        schema: object = self.parameters
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
            raise ValidationError(
                f"the parameters of the tool {name!r} are {schema!r}"[:200],
                hint="give the JSON Schema of an object: {'type': 'object', 'properties': {…}}",
            )
        if not callable(self.execute):
            raise ValidationError(f"the tool {name!r} cannot be called: {self.execute!r}"[:200])
        if not isinstance(cast("object", self.description), str):
            raise ValidationError(f"the description of the tool {name!r} is no text")
        spec = ToolSpec(name=name, description=self.description, parameters=dict(self.parameters))
        object.__setattr__(self, "spec", spec)


def tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    idempotent: bool = False,
) -> Tool:
    """Make a tool of a function: its parameters by their type hints, its docstring as description.

    Example:
        >>> def weather(city: str, days: int = 1) -> str:
        ...     "Forecast for a city."
        ...     return f"sunny in {city}"
        >>> tool(weather).spec.parameters["required"]
        ['city']

    Raises:
        ValidationError: a parameter without a type hint, or positional-only or variadic ones.
    """
    from pydantic import ConfigDict, create_model  # heavy, and only workers have tools

    called = name or function.__name__
    hints = get_type_hints(function, include_extras=True)
    shape: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValidationError(
                f"the tool {called!r} takes {str(parameter)!r}", hint="name each parameter"
            )
        if parameter.name not in hints:
            raise ValidationError(
                f"the parameter {parameter.name!r} of the tool {called!r} has no type hint",
                hint="the model is told what to give by the hints",
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        shape[parameter.name] = (hints[parameter.name], default)
    model = create_model(f"{called}_arguments", __config__=ConfigDict(extra="forbid"), **shape)

    def given(arguments: Arguments) -> dict[str, object]:
        checked = model.model_validate(dict(arguments))
        return {key: getattr(checked, key) for key in shape}

    async def awaited(arguments: Arguments, context: ToolContext) -> object:
        del context
        return await function(**given(arguments))

    def called_plainly(arguments: Arguments, context: ToolContext) -> object:
        del context
        return function(**given(arguments))

    return Tool(
        name=called,
        description=description or inspect.getdoc(function) or "",
        parameters=model.model_json_schema(),
        execute=awaited if inspect.iscoroutinefunction(function) else called_plainly,
        parallel=parallel,
        idempotent=idempotent,
    )
