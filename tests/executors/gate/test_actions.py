"""Whatever comes as an action is made plain, and nothing that comes can raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from executors.gate.actions import Action, plain


def test_fields_stand_flat_or_under_args_and_the_flat_ones_come_first() -> None:
    action = plain({"type": "read", "path": "/a", "args": {"path": "/b", "file": "/a"}})
    assert action.values("path", "file") == ("/a", "/b")
    assert (action.kind, action.tool) == ("read", "read")


def test_a_tool_is_known_by_its_name_and_judged_by_its_type() -> None:
    action = plain({"type": "bash", "tool": "shell_run", "cmd": "ls"})
    assert (action.tool, action.kind) == ("shell_run", "bash")


@pytest.mark.case("G-041")
def test_a_text_is_the_name_of_a_tool() -> None:
    assert plain("search") == plain({"type": "search"})


def test_a_fetch_with_a_method_in_its_type_is_a_fetch() -> None:
    assert plain({"type": "fetch.get"}).kind == "fetch"
    assert plain({"type": "memory.write"}).kind == "tool"


def test_texts_are_leaves_keys_and_command_lines_put_together() -> None:
    given = {"type": "bash", "argv": ["rm", "-rf", "/"], "args": {"command": "x", "args": ["y", 1]}}
    texts = list(plain(given).texts())
    assert {"rm -rf /", "x y 1", "argv", "rm"} <= set(texts)


def test_what_is_written_somewhere_is_left_out_of_texts_and_json_unless_asked_for() -> None:
    action = plain({"type": "write", "args": {"path": "/a", "content": "DROP", "contents": ["x"]}})
    assert "DROP" not in action.json
    assert "DROP" not in list(action.texts())
    assert "DROP" in action.serialized(payload=True)
    assert "DROP" in list(action.texts(payload=True))


def test_json_is_compact_and_shows_characters_as_they_are() -> None:
    assert plain({"type": "a", "x": ["ü", 1]}).json == '{"type":"a","x":["ü",1]}'


@pytest.mark.case("G-195")
def test_a_copy_shares_nothing_with_what_was_given() -> None:
    given = {"type": "a", "args": {"x": [1]}}
    action = plain(given)
    given["args"]["x"].append(2)  # type: ignore[index]
    assert action.args == {"x": [1]}


@pytest.mark.case("G-203")
def test_the_context_keeps_names_of_live_objects_and_no_secrets() -> None:
    class Provider:
        def __repr__(self) -> str:
            raise AssertionError("nothing asks it")

    context = {"user": "ann", "model": Provider(), "apiKey": "k", "n": {"access-token": "t"}}
    action = plain({"type": "a", "_ctx": context})
    assert action.context == {
        "user": "ann",
        "model": "<Provider>",
        "apiKey": "[secret]",
        "n": {"access-token": "[secret]"},
    }
    assert action.broken is None
    assert "_ctx" not in action.fields
    assert action.given["_ctx"] == action.context


class Locked(dict[str, object]):
    """A mapping whose one field cannot be read."""

    def __getitem__(self, key: str) -> object:
        if key == "bad":
            raise RuntimeError(key)
        return super().__getitem__(key)


@pytest.mark.case("G-018")
def test_a_field_that_raises_leaves_the_others_to_be_judged() -> None:
    action = plain(Locked(type="bash", bad=1, cmd="ls"))
    assert action.values("cmd") == ("ls",)
    assert action.broken is not None
    assert "RuntimeError" in action.broken


class Endless(Mapping[str, object]):
    """A mapping whose keys never end."""

    def __getitem__(self, key: str) -> object:
        return "x"

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"k{number}"

    def __len__(self) -> int:
        return 2


def _nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


def _cyclic() -> dict[str, object]:
    given: dict[str, object] = {"type": "a"}
    given["self"] = given
    return given


def _bomb() -> object:
    value: list[object] = ["x" * 1_000]
    for _ in range(30):
        value = [value] * 10
    return value


@pytest.mark.case("G-153")
@pytest.mark.parametrize(
    "given",
    [
        _cyclic(),
        {"type": "a", "x": object()},
        {"type": "a", "x": {1, 2}},
        {"type": "a", "x": (n for n in range(3))},
        {"type": "a", "x": _nested(50_000)},
        {"type": "a", "x": _bomb()},
        {"type": "a", "x": 10**50_000},
        {"type": "a", "x": {("k",): 1}},
        {"type": "a", "x": {1: "one", "1": "other"}},
        {"type": ["bash"]},
        {"type": "a", "tool": 5},
        Endless(),
        None,
        ["bash", "ls"],
        42,
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_json_is_named_as_such(given: object) -> None:
    assert plain(given).broken


def test_the_fault_says_where_it_is() -> None:
    action = plain({"type": "a", "args": {"x": [1, object()]}})
    assert action.broken == "its object is no JSON (at 'args.x.1')"


@pytest.mark.parametrize(
    "value", [b"\xff", float("nan"), float("-inf"), "\ud800", -0.0, None, True, 10**300]
)
def test_odd_leaves_are_plain(value: object) -> None:
    action = plain({"type": "a", "x": value})
    assert action.broken is None
    assert isinstance(action.json, str)


class Liar(str):
    """A text whose every method lies."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "harmless"

    __repr__ = __str__

    def __len__(self) -> int:
        return 1


def test_texts_and_numbers_are_taken_by_what_they_hold_not_by_what_they_say() -> None:
    class Number(int):
        def __index__(self) -> int:
            return 7

    action = plain({"type": "bash", "cmd": Liar("rm"), "n": Number(3)})
    assert action.values("cmd") == ("rm",)
    assert action.values("n") == (3,)
    assert type(action.fields["cmd"]) is str
    assert type(action.fields["n"]) is int


def test_values_that_python_holds_equal_are_told_apart() -> None:
    assert plain({"type": "a", "x": 1, "args": {"x": True}}).values("x") == (1, True)


def test_an_action_is_plain_already() -> None:
    action = Action(type="a", tool="a")
    assert plain(action) is action
