"""What may be written down: values without secrets, whatever they are and wherever secrets stand."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import ConfigError
from executors.gate.actions import plain
from executors.gate.audit.audit import Audit, RunIds
from executors.gate.audit.redactor import Redactor
from executors.gate.config.secrets import SecretsSection
from executors.secrets import Secret, scrub

HIDDEN = "[secret]"


def redactor(environment: dict[str, str] | None = None, **section: object) -> Redactor:
    return Redactor(SecretsSection.model_validate(section), environment=environment or {})


# ---------------------------------------------------------------- by name


@pytest.mark.case("G-189")
@pytest.mark.parametrize(
    "name",
    [
        "apiKey",
        "API_KEY",
        "x-api-key",
        "Authorization",
        "Proxy-Authorization",
        "password",
        "secret",
        "token",
        "client_secret",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "accessToken",
        "Set-Cookie",
        "private_key",
        "aws_secret_access_key",
        "DB_PASSWORD",
        " api key ",
    ],
)
def test_what_stands_under_a_secret_name_is_masked_at_any_depth(name: str) -> None:
    """What a name says holds for texts, numbers and whole mappings below it."""
    for value in ("plain words", 4711, {"inner": ["plain words"]}):
        shown = redactor().redact({"a": [{"b": {name: value}}]})
        assert shown == {"a": [{"b": {name: HIDDEN}}]}


@pytest.mark.case("G-190")
@pytest.mark.parametrize(
    "name",
    [
        "page_token",
        "csrf_token",
        "nextPageToken",
        "max_tokens",
        "tokens",
        "tokenizer",
        "author",
        "key",
        "PAGE_TOKEN",
        "X-CSRF-Token",
        "secretary",
        "passwordless",
        "keyboard",
    ],
)
def test_names_of_another_trade_are_untouched(name: str) -> None:
    assert redactor().redact({name: "abc"}) == {name: "abc"}


@pytest.mark.case("G-191")
def test_configured_names_match_by_their_stars_in_any_case() -> None:
    own = redactor(keys=["*_token", "x-*-id", "Pin"])
    shown = own.redact(
        {"PAGE_Token": "a", "x-customer-id": "b", "pin": "c", "pins": "d", "x-id": "e"}
    )
    assert shown == {
        "PAGE_Token": HIDDEN,
        "x-customer-id": HIDDEN,
        "pin": HIDDEN,
        "pins": "d",
        "x-id": "e",
    }


@pytest.mark.case("G-193")
def test_empty_lists_leave_what_is_masked_by_default() -> None:
    own = redactor(keys=[], patterns=[], env_vars=[])
    assert own.redact({"api_key": "abc", "text": "Bearer abcdefgh"}) == {
        "api_key": HIDDEN,
        "text": f"Bear{HIDDEN}",
    }


def test_names_can_be_left_out_of_it_but_not_looks() -> None:
    own = redactor(redact_keys=False, keys=["mine"])
    shown = own.redact({"password": "abc", "mine": "abc", "note": "sk-abcdefgh12345678"})
    assert shown == {"password": "abc", "mine": "abc", "note": f"sk-a{HIDDEN}"}


def test_a_name_of_nothing_hides_nothing() -> None:
    assert redactor().redact({"password": None}) == {"password": None}


def test_what_an_option_of_a_command_line_calls_secret_is_masked() -> None:
    words = ["tool", "--api-key", "abc", "--page-token", "abc", "-v"]
    assert redactor().redact(words) == ["tool", "--api-key", HIDDEN, "--page-token", "abc", "-v"]


# ---------------------------------------------------------------- by look


@pytest.mark.case("G-188")
def test_only_four_characters_of_what_a_pattern_finds_are_shown() -> None:
    own = redactor(patterns=[r"tkt-\d{10}"])
    shown = own.redact("from tkt-1234567890 to tkt-0987654321.")
    assert shown == f"from tkt-{HIDDEN} to tkt-{HIDDEN}."


def test_nothing_of_a_short_find_is_shown() -> None:
    assert redactor(patterns=[r"\bpin\d{4}"]).redact("pin1234") == HIDDEN


@pytest.mark.case("G-189")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bearer x", HIDDEN),
        ("use sk-abcdefgh12345678 now", f"use sk-a{HIDDEN} now"),
        ("AKIAABCDEFGHIJKLMNOP", f"AKIA{HIDDEN}"),
        ("https://me:pw@example.com/x?key=abc&page_token=d#e", None),
        ('{"api_key": "a b c"}', f'{{"api_key": {HIDDEN}}}'),
        ("password: hunter2, then", f"password: {HIDDEN}, then"),
        ("export DB_PASSWORD='a b'", f"export DB_PASSWORD={HIDDEN}"),
        (
            "tool --client-secret abc --page-token d",
            f"tool --client-secret {HIDDEN} --page-token d",
        ),
        ("Cookie: a=b; c=d\nAccept: e", f"Cookie: {HIDDEN}\nAccept: e"),
        ("curl -u me:pw https://example.com", f"curl -u me:{HIDDEN} https://example.com"),
        ("page_token=abc csrf_token: d max_tokens=3", "page_token=abc csrf_token: d max_tokens=3"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
            f"a ----{HIDDEN} b",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMII cut", f"----{HIDDEN}"),
    ],
)
def test_what_looks_like_a_secret_is_masked_in_any_text(text: str, shown: str | None) -> None:
    shown = shown or f"https://{HIDDEN}@example.com/x?key={HIDDEN}&page_token=d#e"
    assert redactor().redact(text) == shown


def test_a_pattern_that_is_none_is_refused_when_the_gate_is_made() -> None:
    with pytest.raises(ConfigError, match=r"secrets\.patterns holds '\(\?=x\)'"):
        redactor(patterns=["(?=x)"])


def test_a_secret_that_a_cut_goes_through_is_not_shown_in_part() -> None:
    """A long text is cut before it is searched, and what may have been cut in two is dropped."""
    secret = "cut-in-two-" + "a" * 400
    Secret(secret)
    for at in range(15_900, 16_400, 7):
        assert "cut-in-two" not in redactor().text("." * at + secret)


# ---------------------------------------------------------------- known values


def test_values_of_named_variables_are_masked_everywhere_and_show_nothing() -> None:
    own = redactor({"MY_LOGIN": "correct horse"}, env_vars=["MY_LOGIN", "NOT_SET"])
    assert own.redact(["a correct horse b"]) == [f"a {HIDDEN} b"]
    assert scrub("a correct horse b") == f"a {HIDDEN} b"


def test_variables_with_secret_names_are_known_without_being_named() -> None:
    own = redactor({"ACME_API_KEY": "correcthorse", "HOME": "/srv/correct", "X_TOKEN": "short"})
    assert own.redact("correcthorse /srv/correct short") == f"{HIDDEN} /srv/correct short"


def test_registered_secrets_are_masked_at_any_depth_in_keys_too() -> None:
    Secret("registered-for-this-test")
    deep: object = {"registered-for-this-test": ["registered-for-this-test!"]}
    for _ in range(20):
        deep = [deep]
    shown = json.dumps(redactor().redact(deep))
    assert "registered" not in shown
    assert shown.count(HIDDEN) == 2


def test_two_keys_that_are_masked_both_stay() -> None:
    shown = redactor().redact({"sk-abcdefgh12345678": 1, "sk-abcdefgh87654321": 2})
    assert shown == {f"sk-a{HIDDEN}": 1, f"sk-a{HIDDEN} (1)": 2}


# ---------------------------------------------------------------- whatever it is


@pytest.mark.case("G-198")
def test_secrets_beside_a_cycle_and_far_down_are_not_written() -> None:
    whole: dict[str, object] = {"api_key": "abcdef-1"}
    whole["self"] = whole
    deep: object = {"password": "abcdef-2"}
    for _ in range(200):
        deep = {"x": deep}
    whole["deep"] = deep
    redacted = redactor().redacted(whole)
    assert "abcdef" not in json.dumps(redacted.value)
    assert redacted.omitted == "it contains itself (at 'self')"


@pytest.mark.case("G-203")
def test_live_objects_stand_by_the_names_of_their_classes() -> None:
    class Provider:
        def __init__(self) -> None:
            self.key = "abcdef-3"

        def __repr__(self) -> str:
            return self.key

    action = plain({"type": "x", "args": {"live": Provider()}, "_ctx": {"model": Provider()}})
    for value in (Provider(), {"p": Provider()}, action.args, action.context, Secret("abcdef-4")):
        shown = json.dumps(redactor().redact(value))
        assert "abcdef" not in shown
        assert "<Provider>" in shown or "<Secret>" in shown


@pytest.mark.case("G-199")
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_becomes_null_and_is_flagged(number: float) -> None:
    redacted = redactor().redacted({"a": [number, 1.5]})
    assert redacted.value == {"a": [None, 1.5]}
    assert redacted.not_finite


def test_huge_numbers_bytes_and_half_characters_are_written_as_texts() -> None:
    assert redactor().redact([2**70, b"Bearer abcdefgh", "a\ud800b"]) == [
        str(2**70),
        f"Bear{HIDDEN}",
        "a\ufffdb",
    ]


@pytest.mark.case("G-195")
def test_what_was_given_is_unchanged() -> None:
    given_ = {"api_key": "abc", "list": ["sk-abcdefgh12345678", float("nan")]}
    redactor().redact(given_)
    assert given_["api_key"] == "abc"
    assert given_["list"][0] == "sk-abcdefgh12345678"


@pytest.mark.case("G-196")
def test_a_secret_in_any_field_of_a_line_is_masked() -> None:
    """In reason, verdict, where, meta, aid and the result of a tool alike."""
    Secret("registered-for-lines")
    audit = Audit(None, run=RunIds(run="r"), redactor=redactor())
    text = "registered-for-lines, sk-abcdefgh12345678"
    audit.write(
        "annotate", reason=text, verdict=text, where=text, meta={text: [text]}, aid=text, rule=text
    )
    audit.write(
        "record", aid=text, action={"type": text}, result={"text": text, "counts": {text: 1}}
    )
    for entry in audit.entries:
        assert "registered" not in json.dumps(entry)
        assert "abcdefgh" not in json.dumps(entry)


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs"]))
    | st.binary()
    | st.builds(object)
    | st.complex_numbers()
    | st.dates()
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers())
    ),
)


@given(value=_VALUES)
def test_any_value_becomes_sound_json(value: object) -> None:
    shown = redactor().redact(value)
    text = json.dumps(shown, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert json.loads(text) == shown


@given(value=_VALUES, at=st.integers(0, 3))
def test_a_registered_secret_is_nowhere_in_any_value(value: object, at: int) -> None:
    secret = "registered-for-any-value"
    Secret(secret)
    whole = [{secret: value}, {"x": [f"<{secret}>", value]}, (secret, value), secret + str(at)][at]
    assert secret not in json.dumps(redactor().redact(whole))
