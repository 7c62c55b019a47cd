"""Names of tools: lists that are empty, globs, and arguments.

Reverted, each of these turns red: an empty list taken for none (G-173), a search in place of a whole
match (G-179), a dot that stops at line breaks (G-178), a list that is swapped (G-174).
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from executors.errors import ConfigError
from executors.gate.actions import plain
from executors.gate.config.load import load_config
from executors.gate.config.tools import ToolsSection
from executors.gate.rules.globs import Glob
from executors.gate.rules.order import Rules
from executors.gate.rules.tools import ToolsRule


def rule_of(tools: dict[str, Any], action: object) -> str:
    return Rules(load_config({"tools": tools})).evaluate(plain(action)).rule


@pytest.mark.parametrize(
    ("tools", "name", "rule"),
    [
        pytest.param(
            {"allowlist": []},
            "search",
            "tools.allowlist.exclusive",
            marks=pytest.mark.case("G-173"),
        ),
        pytest.param(
            {"denylist": ["danger*"]},
            "danger\nous",
            "tools.denylist",
            marks=pytest.mark.case("G-178"),
        ),
        pytest.param(
            {"allowlist": ["git_status"]},
            "git_status\n",
            "tools.allowlist.exclusive",
            marks=pytest.mark.case("G-179"),
        ),
        pytest.param(
            {"denylist": ["a?c", "[ab]"]}, "abc", "default", marks=pytest.mark.case("G-180")
        ),
        pytest.param({"denylist": ["[ab]"]}, "a", "default", marks=pytest.mark.case("G-180")),
        pytest.param(
            {"denylist": ["a?c"]}, "a?c", "tools.denylist", marks=pytest.mark.case("G-180")
        ),
        pytest.param(
            {"denylist": ["mcp:*"]}, "mcp:a/b/c", "tools.denylist", marks=pytest.mark.case("G-181")
        ),
        ({"allowlist": ["search"]}, "search", "default"),
        ({"denylist": []}, "search", "default"),
    ],
)
def test_a_name_is_held_against_the_lists(tools: dict[str, Any], name: str, rule: str) -> None:
    assert rule_of(tools, {"type": name}) == rule


@pytest.mark.case("G-174")
def test_a_list_that_is_swapped_allows_nothing_any_more() -> None:
    section = ToolsSection(allowlist=["search"])
    rule = ToolsRule(section)
    assert rule.deny_unlisted(plain("search")) is None
    object.__setattr__(section, "allowlist", "search")
    denied = rule.deny_unlisted(plain("search"))
    assert denied is not None
    assert denied.rule == "tools.allowlist.invalid"


@pytest.mark.case("G-174")
def test_a_section_that_was_built_around_its_checks_is_no_rule() -> None:
    with pytest.raises(ConfigError, match=r"tools\.allowlist='search'"):
        ToolsRule(ToolsSection.model_construct(allowlist="search"))


def test_patterns_of_arguments_see_what_is_written_and_command_lines_put_together() -> None:
    tools = {"deny_arg_patterns": {"w*": ["AKIA", "^a b$"]}}
    denied = "tools.denyArgPatterns"
    assert rule_of(tools, {"type": "w", "args": {"content": "AKIA1"}}) == denied
    assert rule_of(tools, {"type": "w", "args": {"argv": ["a", "b"]}}) == denied
    assert rule_of(tools, {"type": "x", "tool": "w", "args": {"y": "AKIA"}}) == denied
    assert rule_of(tools, {"type": "x", "args": {"y": "AKIA"}}) == "default"


NAMES = st.text(alphabet="ab/*\n", max_size=6)


@given(pattern=NAMES, name=NAMES)
@example(pattern="a*a", name="a")
@example(pattern="ab*b*ba", name="aba")
def test_a_glob_matches_as_its_expression_would(pattern: str, name: str) -> None:
    import re

    expression = ".*".join(map(re.escape, pattern.split("*")))
    wanted = re.fullmatch(expression, name, re.DOTALL) is not None
    assert Glob(pattern).matches(name) is wanted


@pytest.mark.case("G-183")
@given(
    listed=st.lists(NAMES.filter(str.strip), max_size=5),
    kept=st.sets(st.integers(0, 4)),
    name=NAMES,
)
def test_a_list_made_narrower_never_permits_more(
    listed: list[str], kept: set[int], name: str
) -> None:
    wide = ToolsRule(ToolsSection(allowlist=listed))
    narrow = ToolsRule(
        ToolsSection(allowlist=[one for place, one in enumerate(listed) if place in kept])
    )
    if narrow.deny_unlisted(plain(name)) is None:
        assert wide.deny_unlisted(plain(name)) is None


def test_a_glob_of_many_stars_takes_no_longer_than_its_name() -> None:
    began = time.perf_counter()
    assert not Glob("*a" * 50 + "b").matches("a" * 100_000)
    assert time.perf_counter() - began < 1
