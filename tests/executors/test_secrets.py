"""Secrets never show themselves, and whatever has their shape is masked."""

import copy
import pickle  # noqa: TID251 - the test that it is refused
import traceback

import pytest

from executors.secrets import Secret, scrub, scrub_url

KEY = "canary-value-123456"


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(KEY)
    assert secret.reveal() == KEY
    for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]}", secret.fingerprint):
        assert KEY not in shown


def test_a_secret_cannot_be_stored_or_copied_by_pickling() -> None:
    for take in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="never pickled"):
            take(Secret(KEY))


@pytest.mark.case("K15-17")
def test_a_known_value_is_masked_wherever_it_stands() -> None:
    Secret(KEY)
    assert scrub(f"the server said: key={KEY}!") == "the server said: key=[secret]!"


@pytest.mark.case("K15-16")
@pytest.mark.parametrize(
    "text",
    ["Bearer abcdefgh12345678", "sk-proj-abcdefghijklmnop_-1", "AIzaSyA-1234567890abcdefghij"],
)
def test_what_has_the_shape_of_a_key_is_masked_though_nobody_told_us(text: str) -> None:
    assert scrub(f"<{text}>") == "<[secret]>"


@pytest.mark.case("K15-16")
def test_a_url_keeps_its_place_and_loses_what_may_hide_a_key() -> None:
    url = "https://user:pass@host.example:8443/v1/x?key=hidden#frag"
    assert scrub_url(url) == "https://host.example:8443/v1/x"


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    for value in ("abcdef-1", "abcdef-1-longer"):
        Secret(value)
    assert scrub("abcdef-1-longer") == "[secret]"


def test_a_traceback_of_a_failing_header_does_not_hold_the_value() -> None:
    secret = Secret(KEY)
    try:
        raise ValueError(f"bad header {secret}")
    except ValueError:
        assert KEY not in traceback.format_exc()
