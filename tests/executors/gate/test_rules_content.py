"""What no action may hold, wherever it stands and however it is spelled.

Reverted, each of these turns red: matching JSON alone (G-155), escaping characters in it (G-154), a
backtracking engine (G-156), scanning what is written (G-149), letting through what cannot be read
(G-153).
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from executors.errors import ConfigError
from executors.gate.actions import plain
from executors.gate.config.content import MEANINGS, ContentSection
from executors.gate.config.load import load_config
from executors.gate.patterns import Patterns
from executors.gate.rules.order import Rules

DENIED, ASKED = "content.denyPatterns", "content.askPatterns"
RULES = Rules(load_config({}))


def rule_of(action: object, content: dict[str, Any] | None = None) -> str:
    rules = RULES if content is None else Rules(load_config({"content": content}))
    return rules.evaluate(plain(action)).rule


def sh(command: object) -> dict[str, object]:
    return {"type": "bash", "cmd": command}


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        pytest.param(one, rule, id=f"{case}-{one!r}", marks=pytest.mark.case(case))
        for case, rule, commands in (
            (
                "G-145",
                DENIED,
                ["psql -c 'DROP TABLE x'", "TRUNCATE TABLE x", "rm -rf /x", "git push --force"],
            ),
            (
                "G-146",
                DENIED,
                ["DELETE FROM users", "psql -c 'delete from a.b;'", "DELETE FROM t --"],
            ),
            ("G-146", "default", ["DELETE FROM users WHERE id = 1"]),
            (
                "G-155",
                DENIED,
                [
                    "rm -rf\n/",
                    "rm -fr /",
                    "rm -r -f /",
                    "rm --recursive --force -- '/'",
                    "rm -v -Rf x /",
                    "rm / -rf",
                    "sudo /bin/rm -rf /*",
                    "git push -f",
                    "git push origin main -uf",
                    "git -C /x push --force-with-lease",
                    "git push origin +main",
                ],
            ),
            (
                "G-155",
                "default",
                [
                    "rm -rf build",
                    "rm -rf build > /dev/null",
                    "rm -f /tmp/x",
                    "farm -rf /",
                    "git push --follow-tags",
                    "git push origin main",
                ],
            ),
        )
        for one in commands
    ],
)
def test_what_destroys_is_denied_by_default(command: str, rule: str) -> None:
    assert rule_of(sh(command)) == rule


@pytest.mark.case("G-133", "G-155")
@pytest.mark.parametrize(
    "action",
    [
        sh(["rm", "-rf", "/"]),
        {"type": "run", "args": {"argv": ["rm", "-rf", "/"]}},
        {"type": "run", "args": {"command": "rm", "args": ["-rf", "/"]}},
        {"type": "run", "steps": [{"sh": ["git", "push", "-f"]}]},
        {"type": "run", "args": ["rm", "-rf", "/"]},
        {"type": "run", "x": {"DROP TABLE y": 1}},
        {"type": "run", "x": b"rm -rf /"},
    ],
)
def test_command_lines_are_read_as_they_would_run(action: object) -> None:
    assert rule_of(action) == DENIED


@pytest.mark.case("G-148")
@pytest.mark.parametrize(
    "action",
    [
        {"type": "api", "method": "DELETE"},
        {"type": "api", "args": {"method": "delete"}},
        {"type": "api", "q": "purge all"},
    ],
)
def test_what_is_likely_to_destroy_is_asked_about(action: object) -> None:
    assert rule_of(action) == ASKED


@pytest.mark.case("G-149")
@pytest.mark.parametrize("field", ["content", "contents"])
def test_what_is_written_is_not_read(field: str) -> None:
    assert rule_of({"type": "note", "args": {field: "DROP TABLE x; purge"}}) == "default"


@pytest.mark.case("G-150")
def test_the_same_text_in_a_command_is_denied() -> None:
    assert rule_of(sh("DROP TABLE x")) == DENIED


@pytest.mark.case("G-151")
def test_empty_lists_replace_the_defaults() -> None:
    content: dict[str, Any] = {"deny_patterns": [], "ask_patterns": []}
    assert rule_of(sh("rm -rf / # purge"), content) == "default"


@pytest.mark.case("G-153")
def test_what_cannot_be_judged_whole_is_denied() -> None:
    cyclic: dict[str, object] = {"type": "a"}
    cyclic["x"] = [cyclic]
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    for action in (cyclic, {"type": "a", "x": deep}, {"type": "a", "x": object()}, None, 3):
        assert rule_of(action) == "content.unserializable"


@pytest.mark.case("G-154")
def test_characters_are_matched_as_they_are() -> None:
    content: dict[str, Any] = {"deny_patterns": ['"x":"größe', "(?i)ÜBER"]}
    assert rule_of({"type": "a", "x": "größe"}, content) == DENIED
    assert rule_of({"type": "a", "y": "über"}, content) == DENIED


@pytest.mark.case("G-156")
def test_a_pattern_that_would_hang_others_takes_linear_time() -> None:
    content: dict[str, Any] = {"deny_patterns": ["(a+)+b$", "(?:x|x)*q"], "ask_patterns": []}
    began = time.perf_counter()
    assert rule_of({"type": "a", "x": "a" * 500_000 + "x" * 500_000 + "!"}, content) == "default"
    assert time.perf_counter() - began < 2


@pytest.mark.case("G-156")
@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "RE2 says: invalid perl operator"),
        (r"(a)\1", "RE2 says: invalid escape sequence"),
        ("(a", "RE2 says: missing"),
        ("(?:a{1000}){1000}", "RE2 says: invalid repetition size"),
        ("a*", "it matches every text"),
    ],
)
def test_a_pattern_that_cannot_be_one_is_refused_with_its_reason(pattern: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        Rules(load_config({"content": {"deny_patterns": [pattern]}}))
    what, where, hint = str(caught.value).split("\n")
    assert repr(pattern) in what
    assert "configuration" in where
    assert "look-around" in hint


@pytest.mark.parametrize("patterns", [["(?P<n>a)", "(?P<n>x)"], ["x"]])
def test_patterns_that_cannot_stand_together_are_tried_one_by_one(patterns: list[str]) -> None:
    assert Patterns(patterns, key="k").first(["b", "x\ud800"]) == patterns[-1]


def test_a_quotation_that_is_left_open_ends_with_its_pattern() -> None:
    assert Patterns([r"\Qa", r"\Qb\E|y"], key="k").first(["a"]) == r"\Qa"


def test_each_default_pattern_has_its_meaning() -> None:
    section = ContentSection()
    assert {*section.deny_patterns, *section.ask_patterns} == MEANINGS.keys()


def test_a_reason_names_the_pattern_and_not_the_text() -> None:
    content: dict[str, Any] = {"deny_patterns": ["sec[a-z]+"]}
    decision = Rules(load_config({"content": content})).evaluate(
        plain({"type": "a", "x": "secret"})
    )
    assert "sec[a-z]+" in decision.reason  # type: ignore[union-attr]
    assert "secret" not in decision.reason  # type: ignore[union-attr]
