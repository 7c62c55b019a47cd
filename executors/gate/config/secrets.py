"""What is never written down, beyond what is known to be secret anyway."""

from __future__ import annotations

import re

from pydantic import field_validator

from executors.gate.config.section import Section

__all__ = ["SecretsSection"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretsSection(Section):
    """What is masked in the audit and before people. Each list adds to what is masked by default."""

    env_vars: list[str] | tuple[str, ...] = ()
    """Environment variables whose values are secret, from 6 characters on."""
    patterns: list[str] | tuple[str, ...] = ()
    """Expressions (RE2) of what is secret wherever it stands."""
    keys: list[str] | tuple[str, ...] = ()
    """Names of fields whose values are secret, in any case; `*` stands for any text: `*_token`."""
    redact_keys: bool = True
    """False shows values whatever their fields are called; what has the look of a key stays masked."""

    @field_validator("env_vars")
    @classmethod
    def _are_variables(cls, given: list[str] | tuple[str, ...]) -> list[str] | tuple[str, ...]:
        for name in given:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no environment variable: give its name")
        return given

    @field_validator("patterns", "keys")
    @classmethod
    def _say_something(cls, given: list[str] | tuple[str, ...]) -> list[str] | tuple[str, ...]:
        for one in given:
            if not one.strip("* "):
                raise ValueError(f"{one!r} would mask everything: say what is secret")
        return given
