"""The rules in their order: which of them speaks first, as rows of configuration and action.

Each row turns red when its safeguard is reverted: asks moved behind the list of allowed names (G-005,
G-011, G-014), an empty list of allowed names taken for none (G-008, G-019), content judged after
commands (G-003, G-004), and what cannot be read passed over (G-018, G-153).
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from _pytest.mark import ParameterSet

from executors.gate.actions import plain
from executors.gate.config.load import load_config
from executors.gate.decisions import Allow, Ask, Decision, Deny, Halt
from executors.gate.rules.order import Limit, Rules


def judged(config: Mapping[str, object], action: object) -> Decision:
    return Rules(load_config(config)).evaluate(plain(action))


class Broken(dict[str, object]):
    """An action one of whose fields cannot be read."""

    def __getitem__(self, key: str) -> object:
        if key == "bad":
            raise RuntimeError(key)
        return super().__getitem__(key)


def row(
    case: str, config: Mapping[str, object], action: object, outcome: str, rule: str
) -> ParameterSet:
    return pytest.param(config, action, outcome, rule, id=case, marks=pytest.mark.case(case))


DROP = {"content": {"deny_patterns": ["DROP TABLE"]}, "tools": {"allowlist": ["bash"]}}
DELETE = {"content": {"ask_patterns": ["delete"]}, "tools": {"allowlist": ["fetch"]}}
INJECTION = {"flags": {"injectionRisk": {"high": "deny"}}, "tools": {"allowlist": ["memory.*"]}}
BASH_ASKS = {"flags": {"type": {"bash": "ask"}}, "tools": {"allowlist": ["bash"]}}
INNER = {"tools": {"deny_arg_patterns": {"mcp_invoke": ['name":"linear_admin_']}}}
TIER_3 = {"content": {"deny_patterns": ["rm -rf"]}, "bash": {"classify": True}}

ROWS = [
    row(
        "G-001",
        {"tools": {"denylist": ["mcp:*/admin_*"]}},
        {"type": "mcp:foo/admin_revoke"},
        "deny",
        "tools.denylist",
    ),
    row("G-003", DROP, {"type": "bash", "cmd": "echo DROP TABLE"}, "deny", "content.denyPatterns"),
    row("G-004", TIER_3, {"type": "bash", "cmd": "rm -rf /etc"}, "deny", "content.denyPatterns"),
    row(
        "G-005",
        DELETE,
        {"type": "fetch", "url": "https://example.com/delete"},
        "ask",
        "content.askPatterns",
    ),
    row(
        "G-005",
        DELETE,
        {"type": "note", "text": "delete"},
        "ask",
        "content.askPatterns",
    ),
    row(
        "G-008",
        {"tools": {"allowlist": ["search"]}},
        {"type": "grep"},
        "deny",
        "tools.allowlist.exclusive",
    ),
    row("G-009", {}, {"type": "unknown"}, "allow", "default"),
    row(
        "G-010",
        INJECTION,
        {"type": "memory.write", "injectionRisk": "high"},
        "deny",
        "flags.injectionRisk",
    ),
    row(
        "G-011",
        {"flags": {"provenance": {"web": "ask"}}},
        {"type": "note", "provenance": "web"},
        "ask",
        "flags.provenance",
    ),
    row(
        "G-013", INJECTION, {"type": "memory.write", "injectionRisk": ["high"]}, "allow", "default"
    ),
    row(
        "G-013",
        INJECTION,
        {"type": "memory.write", "injectionRisk": {"high": 1}},
        "allow",
        "default",
    ),
    row("G-014", BASH_ASKS, {"type": "bash", "cmd": "ls"}, "ask", "flags.type"),
    row("G-019", {"tools": {"allowlist": ["a"]}}, {"x": 1}, "deny", "tools.allowlist.exclusive"),
    row("G-019", {"tools": {"allowlist": ["a"]}}, {}, "deny", "tools.allowlist.exclusive"),
    row(
        "G-020",
        INNER,
        {"type": "mcp_invoke", "args": {"name": "linear_admin_x"}},
        "deny",
        "tools.denyArgPatterns",
    ),
    row("G-020", INNER, {"type": "mcp_invoke", "args": {"name": "linear"}}, "allow", "default"),
    row(
        "G-018",
        {"flags": {"risk": {"high": "deny"}}},
        Broken(type="a", bad=1, risk="high"),
        "deny",
        "flags.risk",
    ),
    row("G-018", {}, Broken(type="a", bad=1), "deny", "content.unserializable"),
]


@pytest.mark.parametrize(("config", "action", "outcome", "rule"), ROWS)
def test_a_row_of_the_order(
    config: Mapping[str, object], action: object, outcome: str, rule: str
) -> None:
    decision = judged(config, action)
    assert (decision.outcome, decision.severity, decision.rule) == (outcome, "action", rule)


@pytest.mark.case("G-040")
@pytest.mark.parametrize(
    ("config", "action"),
    [
        (DELETE, {"type": "fetch", "url": "https://example.com/delete"}),
        (BASH_ASKS, {"type": "bash", "cmd": "ls"}),
        ({}, "read"),
        ({}, {"type": "read"}),
    ],
)
def test_what_a_person_could_allow_and_a_name_alone_may_be_offered(
    config: Mapping[str, object], action: object
) -> None:
    assert Rules(load_config(config)).allows(plain(action))


@pytest.mark.case("G-041")
@pytest.mark.parametrize(
    ("tools", "name", "allowed"),
    [
        ({"allowlist": ["sea*"]}, "search", True),
        ({"allowlist": ["sea*"]}, "bash", False),
        ({"allowlist": []}, "search", False),
        ({"denylist": ["bash"]}, "bash", False),
    ],
)
def test_names_are_offered_by_the_lists_of_names(
    tools: Mapping[str, object], name: str, *, allowed: bool
) -> None:
    rules = Rules(load_config({"tools": tools}))
    assert rules.allows(plain(name)) is allowed
    assert rules.allows(plain({"type": name})) is allowed


def test_what_would_be_denied_is_not_offered() -> None:
    assert not Rules(load_config({})).allows(plain({"type": "bash", "cmd": "rm -rf /"}))


LIMITED = {
    "child": Deny(rule="limits.maxChildren", reason="1 of 1"),
    "spawn": Deny(rule="spawn.ratePerMinute", reason="10 of 10"),
    "defer": Deny(rule="defer.ratePerMinute", reason="15 of 15"),
}


@pytest.mark.parametrize(
    ("refused", "action", "rule"),
    [
        ({"child", "spawn"}, {"type": "spawn"}, "limits.maxChildren"),
        ({"spawn"}, {"type": "spawn"}, "spawn.ratePerMinute"),
        ({"spawn"}, {"type": "spawn", "args": {"x": "no"}}, "tools.denyArgPatterns"),
        ({"child", "spawn"}, {"type": "spawn", "args": {"x": "no"}}, "limits.maxChildren"),
        ({"defer", "child"}, {"type": "defer"}, "defer.ratePerMinute"),
        ({"defer", "child", "spawn"}, {"type": "search"}, "default"),
    ],
)
def test_limits_speak_at_their_place(refused: set[str], action: object, rule: str) -> None:
    asked: list[Limit] = []

    def refuses(limit: Limit) -> Deny | Halt | None:
        asked.append(limit)
        return LIMITED[limit] if limit in refused else None

    rules = Rules(load_config({"tools": {"deny_arg_patterns": {"spawn": ["no"]}}}))
    assert rules.evaluate(plain(action), refuses).rule == rule


def test_a_denied_name_is_told_before_anything_is_read() -> None:
    config = {"tools": {"denylist": ["bash"], "allowlist": ["bash"]}}
    assert judged(config, {"type": "bash", "cmd": "rm -rf /"}).rule == "tools.denylist"


def test_a_tool_is_denied_by_its_type_and_allowed_by_its_name() -> None:
    run = {"type": "bash", "tool": "shell_run", "cmd": "ls"}
    assert isinstance(judged({"tools": {"denylist": ["bash"]}}, run), Deny)
    assert isinstance(judged({"tools": {"denylist": ["shell_*"]}}, run), Deny)
    assert isinstance(judged({"tools": {"allowlist": ["shell_run"]}}, run), Allow)
    assert isinstance(judged({"tools": {"allowlist": ["bash"]}}, run), Deny)


def test_the_order_of_sections_does_not_matter() -> None:
    config = {**BASH_ASKS, "content": {"ask_patterns": ["ls"]}}
    turned = dict(reversed(config.items()))
    action = {"type": "bash", "cmd": "ls"}
    assert judged(config, action) == judged(turned, action)
    assert isinstance(judged(config, action), Ask)
