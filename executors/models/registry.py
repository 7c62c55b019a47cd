"""From a model spec to a model.

    openai:NAME               OpenAI's own server, key from OPENAI_API_KEY
    openai+URL:NAME           any compatible server; a key only from the variable that is named
    local[:PATH]              weights on this machine
    encoder[:NAME]            a sentence encoder; it judges and never answers, see `encoder`

In `openai+URL:NAME` the name starts at the first ":" after authority and path, and may hold more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from executors.errors import ConfigError
from executors.models.base import Model
from executors.models.wire.origins import OPENAI_URL, checked_base_url, origin_of
from executors.secrets import Secret, scrub

if TYPE_CHECKING:
    import httpx

    from executors.models.wire.bounds import Bounds

__all__ = ["Provider", "is_encoder", "known_providers", "resolve_model"]

_KEY_NAME: Final = "OPENAI_API_KEY"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Authority with an optional port, then a path; what follows is the name. A port is one only before
# a path or a name, so that `http://host:8000` without a name is not read as one called "8000".
_URL_AND_NAME: Final = re.compile(
    r"(?P<url>https?://(?:\[[^\]/]*\]|[^:/\[\]]+)(?::\d+(?=[/:]|$))?(?:/[^:]*)?)(?::(?P<name>.+))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A kind of model spec, for people."""

    name: str
    form: str
    what: str
    extra: str | None = None
    """The extra that it needs; None when it works as installed."""


# Made once, when this module is first imported, which Python does under a lock.
_PROVIDERS: Final = (
    Provider(name="openai", form="openai:NAME", what=f"OpenAI's server; key from {_KEY_NAME}"),
    Provider(
        name="openai+URL",
        form="openai+http://localhost:8000/v1:NAME",
        what="any compatible server; key from the variable that --key-env names",
    ),
    Provider(
        name="local",
        form="local[:PATH]",
        what="llama.cpp in a child process; without a path the weights of RLM_GGUF or the package",
        extra="local",
    ),
    Provider(
        name="encoder",
        form="encoder[:NAME]",
        what="a sentence encoder: judges by labels, free, no key",
        extra="encoder",
    ),
)


def known_providers() -> tuple[Provider, ...]:
    """Return every kind of spec that `resolve_model` and the encoder judge take."""
    return _PROVIDERS


def is_encoder(spec: str) -> bool:
    """Whether a spec names an encoder, which judges by itself and is no Model."""
    return spec == "encoder" or spec.startswith("encoder:")


def resolve_model(
    spec: str,
    *,
    key_env: str | None = None,
    environ: Mapping[str, str] | None = None,
    bounds: Bounds | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    context_window: int | None = None,
    warn: Callable[[str], None] | None = None,
    asks: bool = True,
) -> Model:
    """Return the model that a spec names; nothing is asked or downloaded.

    Args:
        key_env: name of the environment variable with the key, never the key.
        environ: where variables are read; None reads the process's own.
        asks: False for a model that is never asked and only says what it is: a key that is not set
            is no error then.

    Raises:
        ConfigError: unknown provider, missing name or key, or a URL that cannot be used.
        MissingExtra: the spec needs an extra that is not installed.
    """
    provider, _, rest = spec.partition(":")
    environ = os.environ if environ is None else environ
    if provider == "local":
        _needs_no_key(spec, key_env)
        # Loads native code and weights: only who names it pays.
        from executors.models.local.model import LocalModel

        return LocalModel(rest or None, environ=environ)
    if provider == "openai":
        url, name = OPENAI_URL, rest
    elif spec.startswith("openai+"):
        url, name = _url_and_name(spec)
    else:
        raise _unknown(spec)
    if not name:
        raise ConfigError(f"the model spec {_shown(spec)} names no model", hint=_choices())
    # Brings the HTTP stack, which an encoder or a rule never needs.
    from executors.models.openai.model import OpenAIModel

    return OpenAIModel(
        name,
        base_url=url,
        key=_key(url, key_env, environ) if asks else None,
        bounds=bounds,
        transport=transport,
        context_window=context_window,
        warn=warn,
    )


def _url_and_name(spec: str) -> tuple[str, str]:
    text = spec.removeprefix("openai+")
    authority = text.partition("://")[2].partition("/")[0]
    if "@" in authority:
        raise ConfigError(
            "the URL of the model spec holds a user name or password",
            hint="put the key into an environment variable and name it with --key-env",
        )
    found = _URL_AND_NAME.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"the model spec {_shown(spec)} holds no usable URL",
            hint="write it like openai+http://localhost:8000/v1:NAME",
        )
    return checked_base_url(found["url"]), found["name"] or ""


def _key(url: str, key_env: str | None, environ: Mapping[str, str]) -> Secret | None:
    """Return the key that may go to a URL: OpenAI's own to OpenAI alone, others when named."""
    if key_env is None:
        if origin_of(url) != origin_of(OPENAI_URL):
            return None
        key_env = _KEY_NAME
    if not _NAME.fullmatch(key_env):
        raise ConfigError(
            "key_env is not the name of an environment variable",
            hint="give the variable's name, never the key itself: --key-env MY_KEY",
        )
    value = environ.get(key_env, "").strip()
    if not value:
        raise ConfigError(
            f"the environment variable {key_env!r} is not set or empty",
            where=f"key for {origin_of(url)}",
            hint=f"set it: export {key_env}=…, or name another one with --key-env",
        )
    return Secret(value)


def _needs_no_key(spec: str, key_env: str | None) -> None:
    if key_env is not None:
        raise ConfigError(
            f"the model {_shown(spec)} takes no key, and key_env names one",
            hint="leave --key-env out",
        )


def _unknown(spec: str) -> ConfigError:
    if is_encoder(spec):
        return ConfigError(
            f"{_shown(spec)} is an encoder: it judges, and answers nothing",
            hint="leave the judge out, or name a model that answers",
        )
    return ConfigError(f"unknown model spec {_shown(spec)}", hint=_choices())


def _shown(spec: str) -> str:
    return repr(scrub(spec))


def _choices() -> str:
    return "choose one of: " + ", ".join(provider.form for provider in _PROVIDERS)
