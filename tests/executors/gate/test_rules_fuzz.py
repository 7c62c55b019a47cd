"""No action whatever makes the rules raise, hang, or allow what they could not read."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.gate.actions import plain
from executors.gate.config.load import load_config
from executors.gate.decisions import Allow, Ask, Deny
from executors.gate.rules.order import Rules
from tests.executors.gate.odd import odd_action

CONFIG = {
    "tools": {"deny_arg_patterns": {"*": ["never"]}},
    "flags": {"x": {"true": "ask", "1": "deny"}, "path": {"": "ask"}},
    "fs": {"read_scope": ["/usr"], "write_scope": ["/usr"], "deny": ["/usr/lib"]},
    "bash": {"allow": ["git log"], "deny_patterns": ["never"], "classify": True},
    "net": {"allow_domains": ["example.com"]},
}
RULES = [Rules(load_config({})), Rules(load_config(CONFIG))]


def judge(action: object) -> None:
    made = plain(action)
    for rules in RULES:
        decision = rules.evaluate(made)
        assert isinstance(decision, Allow | Ask | Deny)
        if made.broken is not None:
            assert isinstance(decision, Deny)
        assert isinstance(rules.allows(made), bool)
    assert isinstance(made.given, dict)


@pytest.mark.case("G-018", "G-153")
def test_no_action_makes_the_rules_raise_or_hang() -> None:
    """Seeds are drawn one by one, so that the one that fails can be made again."""
    began = time.perf_counter()
    for seed in range(3_000):
        judge(odd_action(Random(seed)))
    assert time.perf_counter() - began < 60


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(
    kind=st.sampled_from(["bash", "read", "write", "edit", "fetch", "spawn", "defer", "llm", "x"]),
    cmd=st.text() | JSON,
    path=st.text() | JSON,
    args=JSON,
)
def test_no_nested_value_makes_the_rules_raise(
    kind: str, cmd: object, path: object, args: object
) -> None:
    judge({"type": kind, "cmd": cmd, "path": path, "url": path, "args": args})
