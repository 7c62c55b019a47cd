"""What a tool is: a name, a schema of its arguments, and the function that does it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Protocol,
    cast,
    get_args,
    get_type_hints,
    runtime_checkable,
)

from executors.coroutines import is_async
from executors.errors import ValidationError
from executors.gate.governor import DeedKind
from executors.ids import NodeId
from executors.messages import ToolSpec
from executors.replies import JsonValue

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Arguments", "Execute", "Led", "Tool", "ToolContext", "tool", "words_alone"]

Arguments = Mapping[str, JsonValue]
_LONGEST: Final = 8_000
"""Characters of a description."""
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


@runtime_checkable
class Led(Protocol):
    """An `execute` that is led from one place to others: to URLs by redirects, to files by a search."""

    def checked(self, check: Callable[[str], str | None]) -> Execute:
        """Return one whose every place has to pass a check, which says why one may not be gone to."""
        ...


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
    stays: bool = False
    """It sends nothing anywhere but by calls of models, so that a receipt need not doubt it."""
    kind: DeedKind = "tool"
    """What it does, for the rules of a gate that are about that; its arguments are then named as those
    rules read them: `path`, `cmd` or `argv`, `url` and `method`."""
    judged: Callable[[Arguments], Arguments] | None = None
    """Returns arguments as those rules read them, where the model gives them otherwise: a path from /
    on for one below a folder. It raises nothing."""
    spec: ToolSpec = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValidationError(
                f"{name!r} is no name of a tool",
                hint="take 1 to 64 of letters, digits, _ and -",
            )
        schema: object = self.parameters
        if not _is_of_an_object(schema):
            raise ValidationError(
                f"the parameters of the tool {name!r} are {schema!r}"[:200],
                hint="give the JSON Schema of an object: {'type': 'object', 'properties': {…}}",
            )
        if self.kind not in get_args(DeedKind):
            raise ValidationError(
                f"the tool {name!r} is of kind {self.kind!r}"[:200],
                hint=f"choose one of {', '.join(get_args(DeedKind))}",
            )
        if not callable(self.execute):
            raise ValidationError(
                f"the tool {name!r} cannot be called: {self.execute!r}"[:200],
                hint="give execute= a function of (arguments, context), async or not",
            )
        if not isinstance(cast("object", self.description), str):
            raise ValidationError(
                f"the description of the tool {name!r} is {self.description!r}"[:200],
                hint="say in text what it does: the model chooses by it",
            )
        if len(self.description) > _LONGEST:
            raise ValidationError(
                f"the description of the tool {name!r} has {len(self.description):,} characters",
                hint=f"at most {_LONGEST:,}: it is sent with every round, whoever wrote it",
            )
        spec = ToolSpec(name=name, description=self.description, parameters=dict(self.parameters))
        object.__setattr__(self, "spec", spec)


def words_alone(arguments: Arguments) -> Arguments:
    """Say for a gate that the texts of a call are words for a model or a search, and no deed.

    What a task to "delete the old rows" leads to is judged when something deletes. Patterns that are
    given for a tool's arguments read them all the same.
    """
    plain = {key: one for key, one in arguments.items() if isinstance(one, int | float | None)}
    words = {key: one for key, one in arguments.items() if key not in plain}
    return {**plain, "content": words} if words else plain


def _is_of_an_object(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    named = cast("Mapping[str, object]", schema)
    return named.get("type", "object") == "object" and isinstance(
        named.get("properties", {}), Mapping
    )


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
        ValidationError: a parameter without a type hint, positional-only, variadic, or of a type that
            JSON has no form for; a function without a name.
    """
    if not callable(cast("object", function)):
        raise ValidationError(
            f"{function!r} is no function to make a tool of"[:200],
            hint="give one with type hints and a docstring",
        )
    called = str(getattr(function, "__name__", "")) if name is None else name
    if not isinstance(cast("object", called), str) or not called:
        raise ValidationError(
            f"name={name!r} is no name of a tool"[:200],
            hint="give name=…, where the function has none of its own",
        )
    shape = _shape(function, called)
    model = _model(function, called, shape)

    def given(arguments: Arguments) -> dict[str, object]:
        checked = model.model_validate(dict(arguments))
        return {key: getattr(checked, field) for field, key in shape.items()}

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
        execute=awaited if is_async(function) else called_plainly,
        parallel=parallel,
        idempotent=idempotent,
    )


def _shape(function: Callable[..., object], called: str) -> dict[str, str]:
    """Return the parameters of a function, each under the name of a field.

    The names of fields are made: many a parameter is named like something that models have already.
    """
    shape: dict[str, str] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValidationError(
                f"the tool {called!r} takes {str(parameter)!r}", hint="name each parameter"
            )
        shape[f"a{number}"] = parameter.name
    return shape


def _model(
    function: Callable[..., object], called: str, shape: Mapping[str, str]
) -> type[BaseModel]:
    # Heavy, and only workers have tools.
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError

    parameters = inspect.signature(function).parameters
    hints = _hints(function, called)
    fields: dict[str, Any] = {}
    for field_name, name in shape.items():
        if name not in hints:
            raise ValidationError(
                f"the parameter {name!r} of the tool {called!r} has no type hint",
                hint="the model is told what to give by the hints",
            )
        default = parameters[name].default
        default = ... if default is inspect.Parameter.empty else default
        fields[field_name] = (hints[name], Field(default, alias=name))
    try:
        model: type[BaseModel] = create_model(
            called, __config__=ConfigDict(extra="forbid"), **fields
        )
        model.model_json_schema()
    except PydanticUserError as error:
        raise ValidationError(
            f"the tool {called!r} takes what JSON has no form for: {error}"[:300],
            hint="take texts, numbers, lists, mappings, dataclasses or models",
        ) from None
    return model


def _hints(function: Callable[..., object], called: str) -> dict[str, object]:
    target = getattr(function, "func", function)  # of a partial one
    try:
        return get_type_hints(
            target if inspect.isroutine(target) else type(target).__call__, include_extras=True
        )
    except NameError as error:
        raise ValidationError(
            f"a type hint of the tool {called!r} names nothing: {error}",
            hint="import it where the function is defined, not under TYPE_CHECKING alone",
        ) from None
