"""Which hosts texts may go to. Reverting any of these lets texts out, and turns one of the tests red: a list
that is empty permits nothing, a stand-in model is asked for too, an origin that says nothing is elsewhere, a
proxy reads what is not encrypted, names are matched whole."""

import pytest

from executors.errors import ConfigError, Halted
from executors.gate.config.data import DataSection
from executors.gate.rules.hosts import DataRule
from executors.messages import ModelReply, ModelRequest
from executors.models.base import ModelInfo
from executors.models.fakes.scripted import ScriptedModel
from executors.models.masked import Masked
from executors.models.wire.origins import stays_here
from executors.replies import JsonValue
from rlm.cluster import require_place

API = "https://api.example.com:443"


class Elsewhere(ScriptedModel):
    """A model on another machine."""

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(provider="openai", name="m", origin=API)

    async def generate(self, request: ModelRequest) -> ModelReply:
        raise NotImplementedError


def denied(origin: str, hosts: list[str] | None) -> bool:
    found = DataRule(DataSection(hosts=hosts)).deny_host(origin)
    assert found is None or found.rule == "data.hosts"
    return found is not None


@pytest.mark.parametrize(
    ("origin", "hosts"),
    [
        (API, None),
        (API, ["api.example.com"]),
        (API, ["API.Example.COM."]),
        (API, ["other.example", "api.example.com:443"]),
        ("http://api.example.com:80", ["api.example.com:80"]),
        ("https://[2606:4700::1]:443", ["2606:4700::1"]),
        ("https://[2606:4700::1]:8443", ["[2606:4700:0::1]:8443"]),
        ("https://8.8.8.8:443", ["8.8.8.8"]),
        ("https://xn--bcher-kva.example:443", ["bücher.example"]),
        ("dask://10.0.0.9:8786", ["10.0.0.9:8786"]),
        ("dask://localhost:8786", []),
        ("in-process", []),
        ("http://localhost:11434", []),
        ("http://127.0.0.1:8000", []),
        ("http://[::1]:8000", []),
    ],
)
def test_texts_may_go_there(origin: str, hosts: list[str] | None) -> None:
    assert not denied(origin, hosts)


@pytest.mark.parametrize(
    ("origin", "hosts"),
    [
        (API, []),
        (API, ["example.com"]),
        (API, ["api.example.com.evil.example"]),
        ("https://evil-api.example.com:443", ["api.example.com"]),
        ("https://sub.api.example.com:443", ["api.example.com"]),
        ("https://api.example.com:8443", ["api.example.com:443"]),
        ("http://localhost.evil.example:80", []),
        ("http://10.0.0.1:80", []),
        ("http://0.0.0.0:80", []),
        ("dask://10.0.0.9:8786", []),
        ("elsewhere", ["elsewhere"]),
        ("localhost", []),
        ("", []),
        ("https://", []),
        ("https://a:b:c", ["a"]),
    ],
)
def test_texts_may_not_go_there(origin: str, hosts: list[str]) -> None:
    assert denied(origin, hosts)


def test_a_model_that_may_stand_in_is_asked_for_too() -> None:
    rule = DataRule(DataSection(hosts=["api.example.com"]))
    other = ModelInfo(provider="openai", name="n", origin="https://other.example:443")
    info = ModelInfo(provider="openai", name="m", origin=API)
    assert rule.deny_model(info) is None
    found = rule.deny_model(ModelInfo(provider="openai", name="m", origin=API, others=(other,)))
    assert found is not None
    assert "'other.example'" in found.reason
    assert "api.example.com" in found.reason


def test_a_proxy_that_could_read_the_texts_has_to_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    plain = "http://api.example.com:80"
    assert denied(plain, ["api.example.com"])
    assert not denied(plain, ["api.example.com", "proxy.example"])
    assert not denied(API, ["api.example.com"])


@pytest.mark.parametrize(
    "entry",
    ["https://api.example.com", "*.example.com", "*", "", "a b", "a/b", "host:port", "a:1:2"],
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="is no host"):
        DataRule(DataSection(hosts=[entry]))


def test_texts_are_masked_for_models_elsewhere_alone() -> None:
    rule = DataRule(DataSection(mask=["email"]))
    assert isinstance(rule.masked(Elsewhere()), Masked)
    here = ScriptedModel()
    assert rule.masked(here) is here
    plain = Elsewhere()
    assert DataRule(DataSection()).masked(plain) is plain


def test_a_mask_that_hides_less_than_is_asked_for_is_not_enough() -> None:
    once = DataRule(DataSection(mask=["email", "phone"])).masked(Elsewhere())
    assert DataRule(DataSection(mask=["email"])).masked(once) is once
    assert DataRule(DataSection(mask=["email"], phone_region="DE")).masked(once) is once
    for more in (["email", "ip"], ["phone"]):
        rule = DataRule(DataSection.model_validate({"mask": more, "phone_region": "DE"}))
        assert rule.masked(once) is not once


def test_what_is_here_is_this_process_and_this_machine() -> None:
    assert [
        origin for origin in ("in-process", "http://127.0.0.1:1", API, "") if stays_here(origin)
    ] == [
        "in-process",
        "http://127.0.0.1:1",
    ]


def test_texts_go_to_no_cluster_whose_host_is_not_listed() -> None:
    data: dict[str, JsonValue] = {"hosts": ["api.example.com"]}
    with pytest.raises(Halted, match=r"texts may not go to '10\.0\.0\.9'") as caught:
        require_place("dask://10.0.0.9:8786", data)
    assert caught.value.bound == "data.hosts"
    require_place("dask://localhost:8786", data)
    require_place("dask:2", data)
    require_place("dask://10.0.0.9:8786", {"hosts": ["10.0.0.9"]})
    require_place("dask://10.0.0.9:8786", {})
