"""Configurations: what is empty, what is wrong, and files of each kind.

Reverted, each of these turns red: an empty list taken for none (the five kinds of empty), a key that
nobody knows passed over (G-176), values of other places in YAML (a short file that fills all memory), a key
that stands twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from executors.errors import ConfigError
from executors.gate.actions import plain
from executors.gate.config.config import GateConfig
from executors.gate.config.load import load_config
from executors.gate.config.yaml_text import read_yaml
from executors.gate.rules.order import Rules


def rule_of(config: dict[str, Any], action: object) -> str:
    return Rules(load_config(config)).evaluate(plain(action)).rule


LS = {"type": "bash", "cmd": "ls"}
RM = {"type": "bash", "cmd": "rm -rf / # purge"}
FETCH = {"type": "fetch", "url": "https://example.com/"}


@pytest.mark.parametrize(
    ("config", "action", "rule"),
    [
        # What allows: nothing is permitted.
        pytest.param(
            {"tools": {"allowlist": []}},
            LS,
            "tools.allowlist.exclusive",
            marks=pytest.mark.case("G-173"),
        ),
        ({"bash": {"allow": []}}, LS, "bash.allow"),
        pytest.param(
            {"fs": {"read_scope": []}},
            {"type": "read", "path": "/etc/hosts"},
            "fs.readScope",
            marks=pytest.mark.case("G-121"),
        ),
        (
            {"fs": {"write_scope": []}},
            {"type": "write", "path": "/etc/hosts"},
            "fs.writeScope",
        ),
        pytest.param(
            {"net": {"allow_domains": []}},
            FETCH,
            "net.allowDomains",
            marks=pytest.mark.case("G-158"),
        ),
        # What denies: nothing is forbidden.
        ({"tools": {"denylist": [], "deny_arg_patterns": {}}}, LS, "default"),
        ({"tools": {"deny_arg_patterns": {"bash": []}}}, LS, "default"),
        ({"bash": {"deny_patterns": []}}, LS, "default"),
        ({"fs": {"deny": [], "read_scope": ["/usr"]}}, {"type": "read", "path": "/usr"}, "default"),
        ({"flags": {}}, LS, "default"),
        ({"flags": {"type": {}}}, LS, "default"),
        # Content: the defaults are replaced.
        pytest.param(
            {"content": {"deny_patterns": [], "ask_patterns": []}},
            RM,
            "default",
            marks=pytest.mark.case("G-151"),
        ),
        ({"content": {"ask_patterns": []}}, RM, "content.denyPatterns"),
        ({"content": {"deny_patterns": []}}, RM, "content.askPatterns"),
        ({"content": {}}, RM, "content.denyPatterns"),
        # What only adds: the defaults stay.
        (
            {
                "content": {"deny_patterns": []},
                "bash": {
                    "classify": True,
                    "extra_destructive": [],
                    "extra_super_destructive": [],
                },
            },
            RM,
            "bash.classify",
        ),
    ],
)
def test_each_kind_of_empty_has_its_own_meaning(
    config: dict[str, Any], action: object, rule: str
) -> None:
    assert rule_of(config, action) == rule


@pytest.mark.case("G-043")
def test_zero_is_a_bound_and_what_is_left_out_is_not() -> None:
    assert load_config({"budget": {"max_cost_usd": 0}}).budget.max_cost_usd == 0
    assert load_config({"limits": {"max_children": 0}}).limits.max_children == 0
    assert load_config({}).budget.max_cost_usd is None


@pytest.mark.case("G-193")
def test_secrets_that_are_empty_keep_their_defaults() -> None:
    given = load_config({"secrets": {"keys": [], "patterns": [], "env_vars": []}})
    assert given.secrets.redact_keys is True


def three_lines(config: object) -> tuple[str, str, str]:
    with pytest.raises(ConfigError) as caught:
        Rules(load_config(config))
    what, where, hint = str(caught.value).split("\n")
    return what, where, hint


@pytest.mark.parametrize(
    ("config", "said", "hint"),
    [
        *(
            pytest.param(
                {"tools": {"allowlist": value}},
                f"tools.allowlist={value!r}",
                "a list of texts",
                marks=pytest.mark.case("G-174"),
            )
            for value in ("", 0, False, "search", {"search"})
        ),
        pytest.param(
            {"tools": {"deny_arg_patterns": {"a": "x"}}},
            "tools.deny_arg_patterns.a='x'",
            "a list of texts",
            marks=pytest.mark.case("G-175"),
        ),
        pytest.param({"tools": "x"}, "tools='x'", "mapping", marks=pytest.mark.case("G-176")),
        pytest.param({"content": []}, "content=[]", "mapping", marks=pytest.mark.case("G-176")),
        ({"flags": {"a": {"b": "halt"}}}, "flags.a.b='halt'", "'deny' or 'ask'"),
        ({"tools": {"denylist": ["a", " "]}}, "tools.denylist=['a', ' ']", "' ' is not"),
        ({"content": {"deny_patterns": [""]}}, "content.deny_patterns=['']", "'' is not"),
        ({"bash": {"classify": "yes"}}, "bash.classify='yes'", "true or false"),
        ({"tool": {}}, "'tool' is no key", "did you mean 'tools'? choices: audit, bash"),
        ({"budget": {"maxCostUsd": 1}}, "'budget.maxCostUsd' is no key", "'max_cost_usd'"),
        ({"x": 1, "tools": {"y": 2}}, "(and 1 more)", "choices"),
        (None, "None is no configuration", "a mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_value_and_the_choices(
    config: object, said: str, hint: str
) -> None:
    if config is None:
        with pytest.raises(ConfigError, match=said):
            load_config(config)
        return
    what, where, advice = three_lines(config)
    assert said in what
    assert where == "the gate's configuration"
    assert hint in advice


def test_values_that_cannot_be_shown_are_still_refused() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError

    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    for value in (Mute(), deep):
        with pytest.raises(ConfigError, match=r"tools\.allowlist=…"):
            load_config({"tools": {"allowlist": value}})


def test_a_configuration_is_frozen_and_any_mapping_will_do() -> None:
    config = load_config(MappingProxyType({"tools": {"allowlist": ["a"]}}))
    assert load_config(config) is config
    with pytest.raises(ValueError, match="frozen"):
        config.tools.allowlist = None


YAML = """
tools:
  allowlist: [search, bash]
flags:
  surface: {true: ask, 3: deny}
budget:
  max_cost_usd: 0.1
limits:
  max_turns: inf
"""
TOML = """
[tools]
allowlist = ["search", "bash"]
[flags.surface]
true = "ask"
3 = "deny"
[budget]
max_cost_usd = 0.1
[limits]
max_turns = inf
"""
JSON = """
{"tools": {"allowlist": ["search", "bash"]}, "flags": {"surface": {"true": "ask", "3": "deny"}},
 "budget": {"max_cost_usd": 0.1}, "limits": {"max_turns": "inf"}}
"""


def test_files_of_each_kind_say_the_same(tmp_path: Path) -> None:
    found: list[GateConfig] = []
    for name, text in (("g.yaml", YAML), ("g.yml", YAML), ("g.toml", TOML), ("g.JSON", JSON)):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8-sig")
        found.append(load_config(path))
        assert load_config(str(path)) == found[0]
    assert (
        Rules(found[0]).evaluate(plain({"type": "search", "surface": True})).rule == "flags.surface"
    )


def test_a_configuration_written_as_json_is_read_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    (tmp_path / "g.yaml").write_text(YAML, encoding="utf-8")
    config = load_config(tmp_path / "g.yaml")
    path.write_text(config.model_dump_json(), encoding="utf-8")
    again = load_config(path)
    assert again.model_dump_json() == config.model_dump_json()


def test_an_empty_file_is_a_configuration_of_defaults(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("# nothing\n", encoding="utf-8")
    assert load_config(path) == GateConfig()


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.yaml", BOMB, "another place's value"),
        ("g.yaml", "a: *x", "another place's value"),
        ("g.yaml", "a: &x {<<: *x}", "another place's value"),
        ("g.yaml", "a: !!python/object/apply:os.system [ls]", r"tags \(!\) in line 1"),
        ("g.yaml", "tools: {}\ntools: {}", "'tools', which stands there already, in line 2"),
        ("g.yaml", "[" * 100_000, "more than 32 levels"),
        ("g.yaml", "? [a]\n: b", "no text"),
        ("g.yaml", "a: 1\n---\nb: 2", "a second document"),
        ("g.yaml", "a: [", "line 1"),
        ("g.yaml", "- a", "it=|'it' cannot|it="),
        ("g.json", '{"tools": {}, "tools": {}}', "'tools' stands twice"),
        ("g.json", "[" * 100_000, "nested too deeply"),
        ("g.json", '{"a": ' + "9" * 10_000 + "}", "cannot be read"),
        ("g.json", "[]", "it="),
        ("g.toml", "a = [" + "[" * 50_000, "cannot be read"),
        ("g.toml", "a = 1\na = 2", "cannot be read"),
        ("g.conf", "", "'.conf' is no kind of file"),
        ("g.yaml", "x" * 1_000_001, "longer than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        load_config(path)
    assert str(path) in str(caught.value)


def _nothing(path: Path) -> None:
    path.unlink(missing_ok=True)


def _bytes(path: Path) -> None:
    path.write_bytes(b"a: \xff")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "No such file"),
        (Path.mkdir, "no plain file"),
        (os.mkfifo, "no plain file"),
        (_bytes, "byte 3 is no UTF-8"),
    ],
)
def test_what_is_no_file_of_text_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "g.yaml"
    make(path)
    with pytest.raises(ConfigError, match=said):
        load_config(path)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000])
def test_a_name_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        load_config(path)


def test_yaml_has_the_types_of_json_and_no_others() -> None:
    text = "[no, on, 1:30, 2020-01-01, 0x10, 1_000, 1, -2, 1.5, 1e3, .inf, 'true', true, ~, null]"
    assert read_yaml(text) == [
        *("no", "on", "1:30", "2020-01-01", "0x10", "1_000"),
        *(1, -2, 1.5, 1000.0, float("inf"), "true", True, None, None),
    ]
    assert read_yaml("a:\n  - b: |\n      two\n      lines\n    c: >-\n      one\n      line") == {
        "a": [{"b": "two\nlines\n", "c": "one line"}]
    }
