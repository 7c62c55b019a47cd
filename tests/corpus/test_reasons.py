"""Reasons name what was behind them, in few kinds, whatever a server says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.reasons import Reasons, first_words
from executors.errors import ContextExceeded, RequestRejected, RetriesExhausted, ServerFault
from executors.secrets import Secret


def test_a_failed_call_is_told_with_the_servers_words() -> None:
    told = Reasons().call_failed
    fault = ServerFault("the server answered 503: 'busy'")
    assert told(fault) == "the call failed: server-fault: the server answered 503: 'busy'"
    assert told(RetriesExhausted(last=fault, attempts=5)) == (
        "the call failed after all its tries: server-fault: the server answered 503: 'busy'"
    )


def test_errors_that_differ_in_an_id_or_a_counter_are_one_reason() -> None:
    reasons = Reasons()
    told = {
        reasons.call_failed(RequestRejected(f"400: bad (request req-{n:08x}, at 17{n:08d})"))
        for n in range(500)
    }
    assert told == {"the call failed: rejected: 400: bad (request req-00000000, at 1700000000)"}


def test_after_a_few_different_ones_the_kind_alone_is_said() -> None:
    reasons = Reasons(most=3)
    told = [reasons.call_failed(ServerFault("no" * n)) for n in range(1, 50)]
    assert len(set(told)) == 4
    assert told[-1] == "the call failed: server-fault"
    assert told[0] == reasons.call_failed(ServerFault("no"))


def test_what_speaks_of_its_own_items_is_a_kind_alone() -> None:
    assert Reasons().call_failed(ContextExceeded("7,104 tokens")) == (
        "the call failed: context-exceeded"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("  one\ttwo \r\nthree", "one two"),
        ("red \x1b[31m\u202e", "red \\x1b[31m\\u202e"),
        ("half \ud83d", "half \\ud83d"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_foreign_words_are_one_short_line_that_steers_nothing(text: str, shown: str) -> None:
    assert first_words(text) == shown


def test_a_known_secret_is_masked_before_words_are_cut() -> None:
    Secret("hush-hush-1234")
    assert first_words("x" * 110 + " hush-hush-1234") == "x" * 110 + " [secret]"


@given(st.text(st.characters()))
def test_whatever_is_said_the_words_are_printable_and_short(text: str) -> None:
    shown = first_words(text)
    assert shown.isprintable()
    assert len(shown) <= 120
