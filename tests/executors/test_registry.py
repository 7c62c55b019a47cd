"""From a spec to a model, and to which origin a key goes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.errors import ConfigError, RlmError
from executors.models.base import ModelInfo
from executors.models.openai.model import OpenAIModel
from executors.models.registry import is_encoder, known_providers, resolve_model
from executors.models.wire.origins import OPENAI_URL

KEY = "sk-canary-0123456789abcdef"
ENV = {"OPENAI_API_KEY": KEY, "MY_KEY": "another-canary-key"}


def resolved(spec: str, *, key_env: str | None = None) -> OpenAIModel:
    model = resolve_model(spec, key_env=key_env, environ=ENV)
    assert isinstance(model, OpenAIModel)
    return model


@pytest.mark.parametrize(
    ("spec", "origin", "name"),
    [
        ("openai:gpt-x", "https://api.openai.com:443", "gpt-x"),
        ("openai:ft:gpt-x:org::id", "https://api.openai.com:443", "ft:gpt-x:org::id"),
        ("openai+http://localhost:8000/v1:name", "http://localhost:8000", "name"),
        ("openai+http://localhost:8000/v1:llama3:8b", "http://localhost:8000", "llama3:8b"),
        ("openai+http://localhost:8000:llama3:8b", "http://localhost:8000", "llama3:8b"),
        ("openai+http://localhost/v1:org/name@rev", "http://localhost:80", "org/name@rev"),
        ("openai+https://models.example/v1/:m", "https://models.example:443", "m"),
        ("openai+https://models.example:m", "https://models.example:443", "m"),
        ("openai+http://[::1]:8000/v1:m", "http://[::1]:8000", "m"),
        ("openai+http://[::1]:m:1", "http://[::1]:80", "m:1"),
    ],
)
def test_the_name_starts_at_the_first_colon_after_authority_and_path(
    spec: str, origin: str, name: str
) -> None:
    info = resolved(spec).info
    assert (info.origin, info.name, info.provider) == (origin, name, "openai")


def test_openais_own_server_gets_the_key_of_its_variable() -> None:
    assert resolved("openai:m").info.key_fingerprint != ""
    assert resolved("openai:m", key_env="MY_KEY").info != resolved("openai:m").info


def test_another_server_gets_a_key_only_by_the_name_of_its_variable() -> None:
    spec = "openai+http://localhost:8000/v1:m"
    assert resolved(spec).info.key_fingerprint == ""
    assert resolved(spec, key_env="MY_KEY").info.key_fingerprint != ""


def test_openais_server_by_its_url_is_still_openais_server() -> None:
    info = resolved("openai+https://api.openai.com/v1:m").info
    assert info == resolved("openai:m").info


def test_a_server_is_named_to_people_where_it_is_not_the_vendors_own() -> None:
    urls = [OPENAI_URL, "http://127.0.0.1:8000/v1"]
    said = [OpenAIModel("m", base_url=url).info.server for url in urls]
    assert said == ["", "http://127.0.0.1:8000"]
    assert ModelInfo(provider="local", name="m", origin="in-process").server == ""


@pytest.mark.parametrize(
    ("spec", "key_env", "name"),
    [
        ("openai:m", None, "OPENAI_API_KEY"),
        ("openai:m", "NOT_SET", "NOT_SET"),
        ("openai+http://localhost/v1:m", "BLANK", "BLANK"),
    ],
)
def test_a_missing_key_names_its_variable(spec: str, key_env: str | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"variable '{name}' is not set or empty"):
        resolve_model(spec, key_env=key_env, environ={"BLANK": " \n"})


def test_a_key_with_a_line_end_from_a_file_is_taken_without_it() -> None:
    one = resolve_model("openai:m", environ={"OPENAI_API_KEY": KEY + "\n"})
    assert one.info == resolved("openai:m").info


@pytest.mark.case("K15-16")
def test_a_key_in_place_of_its_variables_name_is_refused_unshown() -> None:
    with pytest.raises(ConfigError, match="not the name of an environment variable") as caught:
        resolved("openai:m", key_env=KEY)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["gpt-x", "", ":", "anthropic:claude", "OpenAI:m", "openai-http://x:m", "openaim"]
)
def test_an_unknown_spec_is_quoted_and_the_choices_are_listed(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(spec)
    assert repr(spec) in str(caught.value)
    assert "openai:NAME" in str(caught.value)
    assert "openai+http://localhost:8000/v1:NAME" in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "openai:",
        "openai+http://localhost:8000/v1",
        "openai+http://localhost:8000",
        "openai+http://h/v1:",
    ],
)
def test_a_spec_without_a_name_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"names no model|no usable URL"):
        resolved(spec)


@pytest.mark.case("K15-16")
@pytest.mark.parametrize(
    "spec",
    [
        "openai+http://user:hunter2-secret@localhost/v1:m",
        "openai+http://hunter2-secret@localhost:8000:m",
    ],
)
def test_a_url_with_user_info_is_refused_unshown(spec: str) -> None:
    with pytest.raises(ConfigError, match="user name or password") as caught:
        resolved(spec)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "openai+ftp://host/v1:m",
        "openai+localhost:8000:m",
        "openai+http://:m",
        "openai+http:///v1:m",
        "openai+http://host:99999/v1:m",
        "openai+http://host/v1?key=x:m",
        "openai+http://host/v1#x:m",
        "openai+http://[::1/v1:m",
        "openai+http://ho st/v1:m",
        "openai+http://host/a\nb:m",
    ],
)
def test_a_url_that_cannot_be_used_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        resolved(spec)


@given(st.text(alphabet="openai+htp:/[]@.l0\n ?#", max_size=30))
def test_any_spec_is_a_model_or_a_typed_error(text: str) -> None:
    for spec in (text, f"openai{text}", f"openai+http://{text}"):
        try:
            assert resolved(spec).info.name
        except RlmError as error:
            assert isinstance(error, ConfigError)  # noqa: PT017 - either outcome is right


def test_an_encoder_is_no_model_that_answers() -> None:
    assert is_encoder("encoder")
    assert is_encoder("encoder:minilm")
    assert not is_encoder("encoders")
    with pytest.raises(ConfigError, match="'encoder:minilm' is an encoder"):
        resolved("encoder:minilm")


def test_a_local_model_takes_no_key() -> None:
    with pytest.raises(ConfigError, match="takes no key"):
        resolve_model("local", key_env="MY_KEY", environ=ENV)


@pytest.mark.case("K12-10")
def test_twenty_threads_that_resolve_first_all_succeed() -> None:
    barrier = Barrier(20)

    def resolve() -> str:
        barrier.wait()
        return resolved("openai:m").info.name

    with ThreadPoolExecutor(20) as pool:
        futures = [pool.submit(resolve) for _ in range(20)]
        assert [future.result() for future in futures] == ["m"] * 20


def test_every_provider_says_how_it_is_written() -> None:
    names = [provider.name for provider in known_providers()]
    assert names == ["openai", "openai+URL", "local", "encoder"]
    assert all(provider.form.startswith(provider.name[:5]) for provider in known_providers())
