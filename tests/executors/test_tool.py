"""What a tool is, and how a function becomes one."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import pytest
from pydantic import Field

from executors.errors import ValidationError
from executors.tools.base import Tool, tool
from tests.executors.workers import Shop, call, calls, then_done

pytestmark = pytest.mark.anyio


def weather(city: str, days: int = 1) -> str:
    """Forecast for a city."""
    return f"{city}: {days}"


async def run(made: Tool, arguments: dict[str, object]) -> str:
    """Return what a model reads that calls a tool with these arguments."""
    shop = Shop(then_done(calls(call(made.name, arguments))), made)
    await shop.work()
    return shop.results()[0]


async def test_a_function_is_told_by_its_hints_and_its_docstring() -> None:
    made = tool(weather)
    assert (made.name, made.description) == ("weather", "Forecast for a city.")
    assert made.parameters["required"] == ["city"]
    assert made.parameters["additionalProperties"] is False
    assert await run(made, {"city": "Berlin"}) == "Berlin: 1"
    assert await run(made, {"city": "Berlin", "days": 2}) == "Berlin: 2"
    assert "days: 'two' is not of type 'integer'" in await run(made, {"city": "x", "days": "two"})


async def test_parameters_may_be_named_like_anything() -> None:
    def odd(json: str, model_name: str, _x: int, schema: bool = False) -> object:
        return [json, model_name, _x, schema]

    made = tool(odd)
    assert made.parameters["required"] == ["json", "model_name", "_x"]
    assert await run(made, {"json": "a", "model_name": "b", "_x": 1}) == '["a", "b", 1, false]'


async def test_values_arrive_as_the_types_of_the_hints() -> None:
    @dataclass
    class Place:
        x: int

    def go(to: Place, how: Literal["foot", "bus"], fast: Annotated[int, Field(gt=0)]) -> str:
        return f"{type(to).__name__} {to.x} {how} {fast}"

    go.__annotations__["to"] = Place
    made = tool(go)
    assert await run(made, {"to": {"x": 1}, "how": "bus", "fast": 2}) == "Place 1 bus 2"
    assert "fast: 0 is less than" in await run(made, {"to": {"x": 1}, "how": "bus", "fast": 0})


async def test_methods_partial_functions_and_asynchronous_ones_are_tools_too() -> None:
    class Shelf:
        async def find(self, name: str) -> str:
            return f"found {name}"

        async def __call__(self, name: str) -> str:
            return f"called {name}"

    assert await run(tool(Shelf().find), {"name": "a"}) == "found a"
    assert await run(tool(Shelf(), name="shelf"), {"name": "a"}) == "called a"
    assert await run(tool(partial(weather, days=3), name="soon"), {"city": "Rome"}) == "Rome: 3"


def test_what_no_model_could_be_told_of_is_refused() -> None:
    def bare(city: str) -> None: ...

    del bare.__annotations__["city"]

    class Odd: ...

    def many(*cities: str) -> None: ...

    def strange(what: Odd) -> None: ...

    def lost(what: int) -> None: ...

    lost.__annotations__["what"] = "Nowhere"
    strange.__annotations__["what"] = Odd

    with pytest.raises(ValidationError, match="'city' of the tool 'bare' has no type hint"):
        tool(bare)
    with pytest.raises(ValidationError, match=r"takes '\*cities: str'"):
        tool(many)
    with pytest.raises(ValidationError, match="JSON has no form for"):
        tool(strange)
    with pytest.raises(ValidationError, match="names nothing"):
        tool(lost)
    with pytest.raises(ValidationError, match="no name of a tool"):
        tool(partial(weather))


@pytest.mark.case("R-187")
@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "no blanks"},
        {"parameters": "{}"},
        {"parameters": {"type": "array"}},
        {"parameters": {"type": "object", "properties": 3}},
        {"parameters": None},
        {"execute": None},
        {"execute": "weather"},
        {"description": 7},
        {"description": None},
    ],
)
def test_a_bad_tool_is_refused_where_it_is_made(fields: dict[str, object]) -> None:
    good: dict[str, object] = {"name": "a", "description": "", "parameters": {}, "execute": weather}
    with pytest.raises(ValidationError):
        Tool(**{**good, **fields})  # type: ignore[arg-type]


@pytest.mark.case("R-187")
@pytest.mark.parametrize("odd", [None, 42, "weather", [weather]])
def test_what_is_no_function_makes_no_tool(odd: object) -> None:
    with pytest.raises(ValidationError, match=r"is no function to make a tool of\n.*type hints"):
        tool(odd)  # type: ignore[arg-type]


@pytest.mark.case("R-187")
@pytest.mark.parametrize("name", [3, "", b"weather"])
def test_a_name_that_is_none_makes_no_tool(name: object) -> None:
    with pytest.raises(ValidationError, match="is no name of a tool"):
        tool(weather, name=name)  # type: ignore[arg-type]
