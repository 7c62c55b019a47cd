"""Personal data in texts: what its form tells is masked, and nothing else is touched."""

import json
import sys
import time

import pytest

from executors.calls.keys import call_key
from executors.errors import MissingExtra, ValidationError
from executors.messages import Message, ModelRequest, ToolCall
from executors.models.fakes.scripted import ScriptedModel
from executors.models.masked import Masked, masked
from executors.models.masking import Masking, PersonalKind

pytestmark = pytest.mark.anyio

EVERY: tuple[PersonalKind, ...] = ("email", "phone", "iban", "card", "ip")


@pytest.mark.parametrize(
    ("kind", "text", "hidden"),
    [
        ("email", "to a.b+c@mail.example.com!", "to [email]!"),
        ("email", "Jörg@bücher.example, x@y.de", "[email], [email]"),
        ("phone", "call +49 89 1234567 now", "call [phone] now"),
        ("phone", "+1 650-253-0000/+44 20 7946 0018", "[phone]/[phone]"),
        ("iban", "DE89 3704 0044 0532 0130 00 BIC X", "[iban] BIC X"),
        ("iban", "de89370400440532013000.", "[iban]."),
        ("iban", "GB82-WEST-1234-5698-7654-32", "[iban]"),
        ("card", "4111 1111 1111 1111", "[card]"),
        ("card", "12 4111-1111-1111-1111 99", "12 [card] 99"),
        ("card", "x5555555555554444x", "x[card]x"),
        ("ip", "192.168.1.1:80, fe80::1", "[ip]:80, [ip]"),
        ("ip", "[::1]", "[[ip]]"),
    ],
)
def test_what_is_personal_is_masked(kind: PersonalKind, text: str, hidden: str) -> None:
    assert Masking([kind])(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "order 20261201 of 01.12.2026 for 100.000,00 EUR",
        "4111 1111 1111 1112",
        "DE88 3704 0044 0532 0130 02",
        "std::vector at 12:30:45, version 10.2.3 and 1.2.3.4.5",
        "an @mention and a@b",
        "+ 12 - 3",
        "",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert Masking(EVERY)(text) == text


def test_a_telephone_number_of_a_country_needs_its_region() -> None:
    text = "ring 089 1234567"
    assert Masking(["phone"])(text) == text
    assert Masking(["phone"], region="DE")(text) == "ring [phone]"


def test_a_kind_or_a_region_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="no kind of personal data"):
        Masking(["name"])  # type: ignore[list-item]
    with pytest.raises(ValidationError, match="no region"):
        Masking(["phone"], region="Bavaria")


def test_without_the_extra_it_says_which_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stdnum", None)
    with pytest.raises(MissingExtra, match="'mask'"):
        masked(ScriptedModel(), EVERY)


@pytest.mark.parametrize(
    "unit", ["a", "1 ", "4", "4 ", "a.", "DE89 ", ":", "1.1", "@a", "::1 ", "+", "(1", "é@"]
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    mask = Masking(EVERY)
    started = time.perf_counter()
    mask(unit * (100_000 // len(unit)))
    assert time.perf_counter() - started < 5


def request(*messages: Message) -> ModelRequest:
    return ModelRequest(messages=messages, max_tokens=9)


async def test_a_masked_model_is_shown_no_personal_data_in_any_turn() -> None:
    inner = ScriptedModel()
    model = masked(inner, EVERY)
    calls = (
        ToolCall(id="1", name="find", arguments='{"who": "a@b.de", "card": 4111111111111111}'),
        ToolCall(id="2", name="find", arguments="a@b.de, no JSON"),
        ToolCall(id="3", name="find", arguments='{"n": 3, "ok": true}'),
    )
    await model.generate(
        request(
            Message(role="system", content="ask a@b.de"),
            Message(role="assistant", content="", calls=calls),
            Message(role="tool", content="+49 89 1234567", call_id="1"),
            Message(role="user", content="nothing"),
        )
    )
    sent = inner.requests[-1].messages
    assert [turn.content for turn in sent] == ["ask [email]", "", "[phone]", "nothing"]
    assert json.loads(sent[1].calls[0].arguments) == {"who": "[email]", "card": "[card]"}
    assert json.loads(sent[1].calls[1].arguments) == "[email], no JSON"
    assert sent[1].calls[2] is calls[2]


async def test_its_answers_are_filed_apart_and_say_what_was_masked() -> None:
    inner = ScriptedModel()
    model = masked(inner, ["email"])
    other = masked(inner, ["email", "phone"], region="DE")
    asked = request(Message(role="user", content="x"))
    keys = {call_key(one.info, asked, 0) for one in (inner, model, other)}
    assert len(keys) == 3
    assert model.info.identity.endswith("masks email")
    assert other.info.identity.endswith("masks email, phone of DE")
    assert (model.info.name, model.info.origin) == (inner.info.name, inner.info.origin)


async def test_it_can_be_watched_and_closed_like_the_model_itself() -> None:
    heard: list[str] = []
    inner = ScriptedModel()
    model = masked(inner, EVERY)
    assert isinstance(model, Masked)
    reply = await model.generate_streaming(
        request(Message(role="user", content="a@b.de")), heard.append
    )
    assert "".join(heard) in ("", reply.text)
    await model.aclose()
    assert masked(inner, ()) is inner
